package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// checkInputPolicy returns a 422 input_not_allowed if an input writes what the agent does not accept
// from clients. It judges only what is new: clients send the whole list of messages and the state
// back with each input. accepted is what the thread takes of the messages.
func checkInputPolicy(d *agents.Definition, input *agui.RunAgentInput, thread *snapshot.Snapshot, accepted stream.Acceptance) error {
	var written []agui.Message
	for _, m := range accepted.Tail {
		if m.Message != nil {
			written = append(written, *m.Message)
		}
	}
	for _, m := range slices.Concat(written, accepted.Updated) {
		pointer := messagePointer(input, m.ID)
		switch {
		case (m.Role == agui.RoleSystem || m.Role == agui.RoleDeveloper) && !d.Input.AcceptsInstructions():
			return notAllowed(pointer, "instructions", "does not accept system and developer messages from clients: send the text as context of the input, or write it into the agent's instructions")
		case m.Role == agui.RoleTool && !d.Input.AcceptsToolResults() && !isKnownResult(thread, m):
			return notAllowed(pointer, "toolResults", "does not accept the result of a tool call that the thread does not have")
		case m.Role == agui.RoleAssistant && !d.Input.AcceptsEdits():
			return notAllowed(pointer, "edits", "does not accept messages of assistants from clients: send only new messages of the user")
		}
	}
	switch {
	case !d.Input.AcceptsEdits() && accepted.Cut && accepted.Keep < len(thread.Entries):
		return notAllowed("/messages", "edits", "does not accept lists that remove messages of the thread: send the messages of the thread unchanged, and new ones after them")
	case !d.Input.AcceptsState() && !decisions.SameJSON(thread.StateWith(&stream.Input{Input: *input}), thread.State):
		return notAllowed("/state", "state", "does not accept changes of the state from clients: send the state of the thread, or {}")
	}
	return nil
}

// isKnownResult reports whether a new tool message is the result of a call of the thread: of one
// without a result, or with the same one.
func isKnownResult(thread *snapshot.Snapshot, m agui.Message) bool {
	if _, ok := thread.FindCall(m.ToolCallID); !ok {
		return false
	}
	return !slices.ContainsFunc(thread.Entries, func(e snapshot.Entry) bool {
		return e.Message.Role == agui.RoleTool && e.Message.ToolCallID == m.ToolCallID && !sameResult(e.Message, m)
	})
}

// sameResult reports whether two tool messages have the same content, whatever their IDs.
func sameResult(a, b agui.Message) bool {
	a.ID = b.ID
	first, err := json.Marshal(a)
	second, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && decisions.SameJSON(first, second)
}

// messagePointer returns the JSON pointer to a message of an input.
func messagePointer(input *agui.RunAgentInput, id string) string {
	return fmt.Sprintf("/messages/%d", slices.IndexFunc(input.Messages, func(m agui.Message) bool { return m.ID == id }))
}

// notAllowed returns the 422 input_not_allowed. key is the key below input in the definition that
// allows it.
func notAllowed(pointer, key, reason string) *problem.Problem {
	p := problem.New(http.StatusUnprocessableEntity, "input_not_allowed", "the agent "+reason+"; or set input."+key+" to accept in its definition")
	p.Pointer = pointer
	return p
}
