package remote

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// ResumeError says why decisions cannot be sent to a remote.
type ResumeError struct {
	InterruptID string // "" = it concerns no single interrupt
	Reason      string
}

// Error implements error.
func (e *ResumeError) Error() string {
	if e.InterruptID == "" {
		return "remote: resume: " + e.Reason
	}
	return fmt.Sprintf("remote: resume: interrupt %.100q %s", e.InterruptID, e.Reason)
}

// Resume returns the input with the decisions about all interrupts that the previous run has asked,
// with the remote's IDs. It does not change in. The decisions become
//
//   - entries of resume, for interrupts of an outcome;
//   - forwardedProps.command, for interrupts of custom events: {resume, interruptEvent} for one, and
//     {resume: {id: payload, …}} for several of LangGraph. Several interrupts of LangGraph in an
//     outcome take that form, too: its adapter gives all of them the same value otherwise.
//
// The command has no form for an abandoned interrupt, except in LangGraph's table. If all are abandoned,
// they become entries of resume, which present versions of LangGraph and Mastra accept; older ones ask
// again. Otherwise they are left out, because a remote that reads resume ignores the command. The error
// is a *ResumeError: a decision is missing or for another interrupt, forwardedProps is no object, or
// several custom events have no IDs that the remote knows.
func Resume(in agui.RunAgentInput, asked []Interrupt, decisions []agui.ResumeEntry) (agui.RunAgentInput, error) {
	decided := make(map[string]agui.ResumeEntry, len(decisions))
	for _, d := range decisions {
		decided[d.InterruptID] = d
	}
	in.Resume = nil
	isTable := len(asked) > 1 && !slices.ContainsFunc(asked, func(i Interrupt) bool { return !i.takesTable() })
	var commanded []Interrupt
	var abandoned []agui.ResumeEntry // of custom events
	for _, i := range asked {
		d, ok := decided[i.Interrupt.ID]
		if !ok {
			return in, &ResumeError{i.Interrupt.ID, "has no decision"}
		}
		delete(decided, i.Interrupt.ID)
		switch {
		case i.Event == nil && !isTable:
			in.Resume = append(in.Resume, d)
		case isTable, d.Status == agui.ResumeResolved:
			commanded = append(commanded, i)
		default:
			abandoned = append(abandoned, d)
		}
	}
	for id := range decided {
		return in, &ResumeError{id, "was not asked"}
	}
	if len(commanded) == 0 {
		in.Resume = append(in.Resume, abandoned...)
		return in, nil
	}
	payloads := make(map[string]json.RawMessage, len(decisions))
	for _, d := range decisions {
		// An answer without a payload needs a value: an empty one has no meaning of its own.
		payloads[d.InterruptID] = orEmpty(d.Payload)
		if d.Status != agui.ResumeResolved {
			payloads[d.InterruptID] = cancelledValue(d.InterruptID)
		}
	}
	command, err := commandFor(commanded, payloads)
	if err != nil {
		return in, err
	}
	in.ForwardedProps, err = withCommand(in.ForwardedProps, command)
	return in, err
}

// cancelledValue returns the value with which LangGraph's adapter answers an abandoned interrupt.
func cancelledValue(id string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"__agui_cancelled__": true, "interrupt_id": id})
	if err != nil { // a boolean and a string can always be encoded
		return json.RawMessage("{}")
	}
	return raw
}

// orEmpty returns a payload, or an empty object.
func orEmpty(payload json.RawMessage) json.RawMessage {
	if len(payload) == 0 {
		return json.RawMessage("{}")
	}
	return payload
}

// command is the member of forwardedProps with which LangGraph, Mastra and CopilotKit resume.
type command struct {
	Resume         json.RawMessage `json:"resume"`
	InterruptEvent json.RawMessage `json:"interruptEvent,omitempty"`
}

// commandFor returns the command with the payloads of interrupts. LangGraph takes several by ID.
func commandFor(interrupts []Interrupt, payloads map[string]json.RawMessage) (command, error) {
	if len(interrupts) == 1 {
		return command{payloads[interrupts[0].Interrupt.ID], interrupts[0].Event}, nil
	}
	byID := make(map[string]json.RawMessage, len(interrupts))
	for _, i := range interrupts {
		if !i.takesTable() {
			return command{}, &ResumeError{i.Interrupt.ID, "cannot be answered together with others: the remote takes one answer"}
		}
		byID[i.Interrupt.ID] = payloads[i.Interrupt.ID]
	}
	raw, err := json.Marshal(byID)
	if err != nil {
		return command{}, &ResumeError{Reason: "a payload is not valid JSON"}
	}
	return command{Resume: raw}, nil
}

// withCommand returns forwardedProps with the command. Its other members stay as they are.
func withCommand(props json.RawMessage, c command) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(props) > 0 && (json.Unmarshal(props, &members) != nil || members == nil) {
		return nil, &ResumeError{Reason: "forwardedProps must be an object, because the remote reads its member command"}
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, &ResumeError{Reason: "a payload is not valid JSON"}
	}
	members["command"] = raw
	return json.Marshal(members)
}
