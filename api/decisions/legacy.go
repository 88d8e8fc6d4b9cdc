package decisions

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream/snapshot"
)

// Clients from before AG-UI's interrupts get the custom event on_interrupt, and answer in
// forwardedProps.command: {resume, interruptEvent}, where the latter is the event's value, or
// missing. For an agent with legacyInterrupts this is an entry of resume. Newer clients of this
// kind send resume, with the payload of their pages: often a text, as before.

// ResumeByCommand converts such an answer to an entry of resume. Without an event the entry is
// about the only open interrupt. A command without resume is ignored: other servers have other uses
// for it.
func ResumeByCommand(in *agui.RunAgentInput) {
	var props struct {
		Command struct {
			Resume         json.RawMessage `json:"resume"`
			InterruptEvent json.RawMessage `json:"interruptEvent"`
		} `json:"command"`
	}
	if len(in.Resume) > 0 || json.Unmarshal(in.ForwardedProps, &props) != nil || len(props.Command.Resume) == 0 {
		return
	}
	var asked agui.Interrupt
	if event := props.Command.InterruptEvent; len(event) > 0 && (json.Unmarshal(unquoted(event), &asked) != nil || asked.ID == "") {
		return
	}
	in.Resume = []agui.ResumeEntry{{InterruptID: asked.ID, Status: agui.ResumeResolved, Payload: props.Command.Resume}}
}

// Interpret returns entries of resume with the payloads that such a client means, on a thread that
// waits or has waited for decisions.
func (s *Service) Interpret(sent []agui.ResumeEntry, thread *snapshot.Snapshot) []agui.ResumeEntry {
	asked := thread.Interrupts
	if len(asked) == 0 {
		asked = thread.Answered
	}
	var entries []agui.ResumeEntry
	for _, e := range sent {
		if e.InterruptID == "" && len(asked) == 1 {
			e.InterruptID = asked[0].ID
		}
		if question := questionOf(asked, e.InterruptID); question != nil && len(e.Payload) > 0 {
			e.Payload = s.meantBy(e.Payload, question.ResponseSchema)
		}
		entries = append(entries, e)
	}
	return entries
}

// meantBy returns the meaning of a payload that may be JSON in a text, or the one required member
// of the answer: the first of these that fits the schema.
func (s *Service) meantBy(payload, schema json.RawMessage) json.RawMessage {
	ways := []json.RawMessage{unquoted(payload), payload}
	var has struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &has) == nil && len(has.Required) == 1 {
		for _, way := range ways[:2] {
			if body, err := json.Marshal(map[string]json.RawMessage{has.Required[0]: way}); err == nil {
				ways = append(ways, body)
			}
		}
	}
	for _, way := range ways {
		if s.fits(way, schema) {
			return way
		}
	}
	return payload
}

func (s *Service) fits(answer, schema json.RawMessage) bool {
	if s.schemas == nil || len(schema) == 0 {
		return true
	}
	_, reason, err := s.schemas.Fits(schema, answer)
	return reason == "" && err == nil
}

// unquoted returns the JSON in a text, as such clients pass values on.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return raw
}
