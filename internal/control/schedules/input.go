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

// members are what an input may have; ids and what answers somebody belong to a run.
var members = []string{"messages", "state", "tools", "context", "forwardedProps"}

// roles are those of messages that begin something. Others refer to what was before.
var roles = []agui.Role{agui.RoleUser, agui.RoleSystem, agui.RoleDeveloper}

const (
	maxMessages = 100
	maxTools    = 100
)

// RunInput returns the input of a run: the same for the same run. Ids of messages derive from the
// run, since they must be unique on a thread. Errors: *FieldError, *agui.DecodeError.
func (s *Schedule) RunInput(run stream.Run) (*agui.RunAgentInput, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(s.Input, &object); err != nil || object == nil {
		return nil, &FieldError{"/input", "must be an object"}
	}
	for name := range object {
		if !slices.Contains(members, name) {
			return nil, &FieldError{"/input", fmt.Sprintf("has the member %.100q, which the input of a schedule has not", name)}
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
	var wrong *agui.DecodeError
	if errors.As(err, &wrong) {
		return nil, &FieldError{"/input" + wrong.Pointer, wrong.Detail}
	}
	if err != nil {
		return nil, err
	}
	return input, checkInput(input)
}

// withMessageIDs gives messages their ids.
func withMessageIDs(raw json.RawMessage, run stream.Run) (json.RawMessage, error) {
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &messages); err != nil || len(messages) == 0 || len(messages) > maxMessages {
		return nil, &FieldError{"/input/messages", fmt.Sprintf("must be a list of 1 to %d messages", maxMessages)}
	}
	for i, m := range messages {
		at := fmt.Sprintf("/input/messages/%d", i)
		if m == nil {
			return nil, &FieldError{at, "must be an object"}
		}
		if _, given := m["id"]; given {
			return nil, &FieldError{at + "/id", "must not be given: each run has messages of its own"}
		}
		id, err := json.Marshal(run.Identify("msg", fmt.Sprintf("schedule/%d", i)))
		if err != nil {
			return nil, fmt.Errorf("schedules: encode: %w", err)
		}
		m["id"] = id
	}
	return json.Marshal(messages)
}

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

// checkProps refuses what a client may ask of us for itself; a schedule says it elsewhere, or has
// no client.
func checkProps(raw json.RawMessage) error {
	var props struct {
		Perdure map[string]json.RawMessage `json:"perdure"`
	}
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &props) // something else than an object has nothing of ours
	}
	for name := range props.Perdure {
		if name != "hold" {
			return &FieldError{"/input/forwardedProps/perdure", fmt.Sprintf("has the member %.100q, which has no meaning on a schedule", name)}
		}
	}
	return nil
}
