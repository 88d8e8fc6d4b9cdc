package llm_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

func TestCollector(t *testing.T) {
	t.Parallel()
	seal := json.RawMessage(`{"s":1}`)
	for name, test := range map[string]struct {
		chunks []llm.Chunk
		want   llm.Message
	}{
		"nothing": {nil, llm.Message{Role: llm.RoleAssistant}},
		"text":    {[]llm.Chunk{llm.TextDelta{Text: "a"}, llm.TextDelta{Text: "b"}}, llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "ab"}}}},
		"calls in any order": {
			[]llm.Chunk{
				llm.ToolCallStart{Index: 2, ID: "c", Name: "g"}, llm.ToolCallStart{Index: 0, ID: "a", Name: "f"},
				llm.ToolCallDelta{Index: 2, Arguments: "{"}, llm.ToolCallDelta{Index: 0, Arguments: "1"}, llm.ToolCallDelta{Index: 2, Arguments: "}"},
			},
			llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: "1"}, {ID: "c", Name: "g", Arguments: "{}"}}},
		},
		"reasoning in blocks, the last one open": {
			[]llm.Chunk{
				llm.ReasoningDelta{Text: "x"}, llm.ReasoningDelta{Text: "y"}, llm.ReasoningEnd{Provider: "p", Data: seal},
				llm.ReasoningEnd{Provider: "p", Data: seal}, llm.ReasoningDelta{Text: "z"},
			},
			llm.Message{Role: llm.RoleAssistant, Reasoning: []llm.Reasoning{{Text: "xy", Provider: "p", Data: seal}, {Provider: "p", Data: seal}, {Text: "z"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c llm.Collector
			for _, chunk := range test.chunks {
				c.Add(chunk)
			}
			for range 2 { // Message may be called at any time
				if diff := cmp.Diff(test.want, c.Message()); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
			if c.Finish() != nil {
				t.Errorf("Finish before the end = %+v, want nil", c.Finish())
			}
			c.Add(llm.Finish{Reason: llm.FinishStop})
			if c.Finish() == nil || c.Finish().Reason != llm.FinishStop {
				t.Errorf("Finish = %+v, want %v", c.Finish(), llm.FinishStop)
			}
		})
	}
}
