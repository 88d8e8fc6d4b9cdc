package decisions

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream/snapshot"
)

// Clients from before AG-UI's interrupts receive the custom event on_interrupt, and answer in
// forwardedProps.command: {resume, interruptEvent}. interruptEvent is the value of that event, or
// missing. An agent with legacyInterrupts accepts such a command as an entry of resume. Newer
// clients of this kind send resume, with the answer as their page has it: often text, or JSON in
// text.

// ResumeByCommand converts the command of a legacy client to an entry of resume, in place. Without
// interruptEvent the entry has no interrupt ID, and Interpret later assigns it to the only open
// interrupt. An input that has entries already, and a command without resume, are left unchanged:
// other servers use command for other purposes.
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

// Interpret returns the entries of a legacy client with the interrupt and the payload that the
// client means. It depends on the thread: on its open interrupts or, if there are none, on those
// that were resolved last. It does not change sent, so that it can be called again for a later
// snapshot.
func (s *Service) Interpret(sent []agui.ResumeEntry, thread *snapshot.Snapshot) []agui.ResumeEntry {
	interrupts := thread.Interrupts
	if len(interrupts) == 0 {
		interrupts = thread.Answered
	}
	var entries []agui.ResumeEntry
	for _, e := range sent {
		if e.InterruptID == "" && len(interrupts) == 1 {
			e.InterruptID = interrupts[0].ID
		}
		if interrupt := interruptByID(interrupts, e.InterruptID); interrupt != nil && len(e.Payload) > 0 {
			e.Payload = s.fittingPayload(e.Payload, interrupt.ResponseSchema)
		}
		entries = append(entries, e)
	}
	return entries
}

// fittingPayload returns the payload that fits the schema of the interrupt. It tries, in this
// order: JSON in a text, the payload as it is, and both of them as the value of the only required
// member. If none fits, it returns the payload unchanged, and the check of the answer refuses it.
func (s *Service) fittingPayload(payload, schema json.RawMessage) json.RawMessage {
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

// fits reports whether an answer is valid by a schema. Without a schema every answer is.
func (s *Service) fits(answer, schema json.RawMessage) bool {
	if s.schemas == nil || len(schema) == 0 {
		return true
	}
	_, reason, err := s.schemas.Fits(schema, answer)
	return reason == "" && err == nil
}

// unquoted returns the JSON that a JSON string contains, as such clients pass values on. Other
// values are returned unchanged.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return raw
}
