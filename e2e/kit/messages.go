package kit

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// IgnoreIDs makes comparisons ignore the ids that Perdure chooses.
var IgnoreIDs = cmp.Options{
	cmpopts.IgnoreFields(Message{}, "ID", "ToolCallID"),
	cmpopts.IgnoreFields(toolCall{}, "ID"),
}

// WantMessages compares messages without their ids.
func WantMessages(t *testing.T, want, got []Message) {
	t.Helper()
	if diff := cmp.Diff(want, got, IgnoreIDs); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// AssistantMessage returns an assistant message with a text.
func AssistantMessage(text string) Message { return Message{Role: "assistant", Content: text} }

// ToolCallMessage returns an assistant message with tool calls.
func ToolCallMessage(calls ...ModelCall) Message {
	m := Message{Role: "assistant"}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{Type: "function", Function: function{Name: c.Name, Arguments: c.Arguments}})
	}
	return m
}

// ToolMessage returns a tool message with a result.
func ToolMessage(text string) Message { return Message{Role: "tool", Content: text} }

// ByCall sorts tool messages in the order of their calls. Parallel calls finish in any order.
func ByCall(messages []Message) []Message {
	order := map[string]int{}
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			order[c.ID] = len(order) + 1
		}
	}
	slices.SortStableFunc(messages, func(a, b Message) int {
		if a.Role != "tool" || b.Role != "tool" {
			return 0
		}
		return order[a.ToolCallID] - order[b.ToolCallID]
	})
	return messages
}
