package schedules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// members are the members of RunAgentInput that a schedule may set. It must not set IDs, nor
// anything that resolves interrupts: those belong to one run.
var members = []string{"messages", "state", "tools", "context", "forwardedProps"}

// roles are the roles that messages of a schedule may have. Messages of the other roles refer to
// earlier messages of a conversation.
var roles = []agui.Role{agui.RoleUser, agui.RoleSystem, agui.RoleDeveloper}

// Bounds of a schedule's input.
const (
	maxMessages = 100
	maxTools    = 100
)

// RunInput returns the input of a run. The result depends on the schedule and the run only. IDs of
// messages derive from the run, since they must be unique in a thread. The zero run is for
// validation: the input then has "-" for its IDs. Errors: *FieldError, *agui.DecodeError.
func (s *Schedule) RunInput(run stream.Run) (*agui.RunAgentInput, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(s.Input, &object); err != nil || object == nil {
		return nil, &FieldError{"/input", "must be an object"}
	}
	for name := range object {
		if !slices.Contains(members, name) {
			return nil, &FieldError{"/input", fmt.Sprintf("must not have the member %.100q", name)}
		}
	}
	messages, err := withMessageIDs(object["messages"], run)
	if err != nil {
		return nil, err
	}
	object["messages"] = messages
	for name, value := range map[string]string{"threadId": cmp.Or(run.Thread.ID, "-"), "runId": cmp.Or(run.ID, "-"), "protocolVersion": agui.Version} {
		if object[name], err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("schedules: encode: %w", err)
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("schedules: encode: %w", err)
	}
	input, err := agui.DecodeInput(body)
	var decodeErr *agui.DecodeError
	if errors.As(err, &decodeErr) {
		return nil, &FieldError{"/input" + decodeErr.Pointer, decodeErr.Detail}
	}
	if err != nil {
		return nil, err
	}
	return input, checkInput(input)
}

// withMessageIDs sets the ID of each message, and refuses messages that have one.
func withMessageIDs(raw json.RawMessage, run stream.Run) (json.RawMessage, error) {
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &messages); err != nil || len(messages) == 0 || len(messages) > maxMessages {
		return nil, &FieldError{"/input/messages", fmt.Sprintf("must be a list of 1 to %d messages", maxMessages)}
	}
	for i, m := range messages {
		pointer := fmt.Sprintf("/input/messages/%d", i)
		if m == nil {
			return nil, &FieldError{pointer, "must be an object"}
		}
		if _, given := m["id"]; given {
			return nil, &FieldError{pointer + "/id", "must not be set: each run has message IDs of its own"}
		}
		id, err := json.Marshal(run.Identify("msg", fmt.Sprintf("schedule/%d", i)))
		if err != nil {
			return nil, fmt.Errorf("schedules: encode: %w", err)
		}
		m["id"] = id
	}
	return json.Marshal(messages)
}

// checkInput checks what the decoder of AG-UI accepts and a schedule must not have: unknown
// members, roles that refer to earlier messages, and too many tools.
func checkInput(input *agui.RunAgentInput) error {
	if unknown := agui.StripInput(input); len(unknown) > 0 {
		return &FieldError{"/input" + unknown[0].Pointer, "is not known to this version"}
	}
	for i, m := range input.Messages {
		if !slices.Contains(roles, m.Role) {
			return &FieldError{fmt.Sprintf("/input/messages/%d/role", i), `must be "user", "system" or "developer"`}
		}
	}
	if len(input.Tools) > maxTools {
		return &FieldError{"/input/tools", fmt.Sprintf("may have at most %d entries", maxTools)}
	}
	return checkProps(input.ForwardedProps)
}

// checkProps refuses the members of forwardedProps.perdure that a schedule cannot use: the schedule
// has members of its own for them, or they concern a connected client. Only "hold" is allowed.
func checkProps(raw json.RawMessage) error {
	var props struct {
		Perdure map[string]json.RawMessage `json:"perdure"`
	}
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &props) // forwardedProps that are no object have no member "perdure"
	}
	for name := range props.Perdure {
		if name != "hold" {
			return &FieldError{"/input/forwardedProps/perdure", fmt.Sprintf("must not have the member %.100q on a schedule", name)}
		}
	}
	return nil
}
