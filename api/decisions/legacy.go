package decisions

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Clients from before AG-UI's interrupts receive the custom event on_interrupt, and answer in
// forwardedProps.command: {resume, interruptEvent}. interruptEvent is the value of that event, or
// missing. An agent with legacyInterrupts accepts such a command as an entry of resume. Newer
// clients of this kind send resume, with the answer as their page has it: often text, or JSON in
// text.
//
// The front ends of remote agents do the same, with the events of the remote. Those name the remote's
// interrupts, or none.

// ConvertCommand converts the command of a legacy client to an entry of resume, in place. Without
// interruptEvent the entry has no interrupt ID, and Interpret later assigns it to the only open
// interrupt; isRemote tells that the event may be one of a remote agent, which need not have an ID
// either. An input that has entries already, and a command without resume, are left unchanged: other
// servers use command for other purposes.
func ConvertCommand(in *agui.RunAgentInput, isRemote bool) {
	var props struct {
		Command struct {
			Resume         json.RawMessage `json:"resume"`
			InterruptEvent json.RawMessage `json:"interruptEvent"`
		} `json:"command"`
	}
	if len(in.Resume) > 0 || json.Unmarshal(in.ForwardedProps, &props) != nil || len(props.Command.Resume) == 0 {
		return
	}
	var interrupt agui.Interrupt
	if event := props.Command.InterruptEvent; len(event) > 0 && (json.Unmarshal(unquote(event), &interrupt) != nil || interrupt.ID == "") {
		if interrupt.ID = ""; !isRemote {
			return
		}
	}
	in.Resume = []agui.ResumeEntry{{InterruptID: interrupt.ID, Status: agui.ResumeResolved, Payload: props.Command.Resume}}
}

// Interpret returns the entries of a legacy client with the interrupt and the payload that the
// client means. It depends on the thread: on its open interrupts or, if there are none, on those
// that were resolved last. It does not change sent, so that it can be called again for a later
// snapshot.
func (s *Service) Interpret(sent []agui.ResumeEntry, snap *snapshot.Snapshot) []agui.ResumeEntry {
	interrupts := snap.Interrupts
	if len(interrupts) == 0 {
		interrupts = snap.Answered
	}
	var entries []agui.ResumeEntry
	for _, e := range perInterrupt(sent, interrupts) {
		switch own := interruptByRemoteID(interrupts, e.InterruptID); {
		case own != nil:
			e.InterruptID = own.ID
		case e.InterruptID == "" && len(interrupts) == 1:
			e.InterruptID = interrupts[0].ID
		}
		if interrupt := interruptByID(interrupts, e.InterruptID); interrupt != nil && len(e.Payload) > 0 {
			e.Payload = s.fittingPayload(e.Payload, interrupt.ResponseSchema)
		}
		entries = append(entries, e)
	}
	return entries
}

// perInterrupt returns the entries with one for each interrupt: LangGraph's front ends answer several
// interrupts with a table by the remote's IDs.
func perInterrupt(sent []agui.ResumeEntry, interrupts []agui.Interrupt) (entries []agui.ResumeEntry) {
	for _, e := range sent {
		var table map[string]json.RawMessage
		isTable := e.InterruptID == "" && len(interrupts) > 1 && json.Unmarshal(e.Payload, &table) == nil && len(table) > 0
		for id := range table {
			isTable = isTable && interruptByRemoteID(interrupts, id) != nil
		}
		if !isTable {
			entries = append(entries, e)
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(table)) {
			entries = append(entries, agui.ResumeEntry{InterruptID: id, Status: e.Status, Payload: table[id]})
		}
	}
	return entries
}

// interruptByRemoteID returns the interrupt that a remote agent names by an ID of its own; nil = none.
func interruptByRemoteID(interrupts []agui.Interrupt, id string) *agui.Interrupt {
	i := slices.IndexFunc(interrupts, func(i agui.Interrupt) bool {
		source, err := stream.QuestionSourceOf(i)
		return err == nil && source.RemoteID != "" && source.RemoteID == id
	})
	if i < 0 {
		return nil
	}
	return &interrupts[i]
}

// fittingPayload returns the payload that fits the schema of the interrupt. It tries, in this
// order: JSON in a text, the payload as it is, and both of them as the value of the only required
// member. If none fits, it returns the payload unchanged, and the check of the answer refuses it.
func (s *Service) fittingPayload(payload, schema json.RawMessage) json.RawMessage {
	candidates := []json.RawMessage{unquote(payload), payload}
	var object struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &object) == nil && len(object.Required) == 1 {
		for _, candidate := range candidates[:2] {
			if body, err := json.Marshal(map[string]json.RawMessage{object.Required[0]: candidate}); err == nil {
				candidates = append(candidates, body)
			}
		}
	}
	for _, candidate := range candidates {
		if s.fits(candidate, schema) {
			return candidate
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

// unquote returns the JSON that a JSON string contains, as such clients pass values on. Other
// values are returned unchanged.
func unquote(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return raw
}
