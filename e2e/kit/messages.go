package kit

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ids are ours to choose: tests compare what people and models see.
var IgnoreIDs = cmp.Options{
	cmpopts.IgnoreFields(Message{}, "ID", "ToolCallID"),
	cmpopts.IgnoreFields(toolCall{}, "ID"),
}

func WantMessages(t *testing.T, want, got []Message) {
	t.Helper()
	if diff := cmp.Diff(want, got, IgnoreIDs); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func Says(text string) Message { return Message{Role: "assistant", Content: text} }

func CallsTools(calls ...ModelCall) Message {
	m := Message{Role: "assistant"}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{Type: "function", Function: function{Name: c.Name, Arguments: c.Arguments}})
	}
	return m
}

func Result(text string) Message { return Message{Role: "tool", Content: text} }

// ByCall sorts tool results by the call that they answer: parallel ones come as they finish.
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
