package e2e

import (
	"slices"
	"testing"
)

const binaryWire = "application/vnd.ag-ui.event+proto"

// A stock client that asks for the binary wire sees what it sees otherwise. The older generation
// asks in vain: its own decoder fails at the result of a tool.
func TestBinaryWire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		yes, no := true, false
		question, thought, answer := user(say("How much?")), say("Calculate, 計算."), say("Grüße, 世界 🌍: it is 84.")
		call := modelCall{ID: "call_a", Name: "calculate", Arguments: `{"expression":"12*7"}`}
		sharedModel.answer(t,
			fixture{Match: match{UserMessage: question.Content, HasToolResult: &no}, Response: response{Reasoning: thought, ToolCalls: []modelCall{call}}},
			fixture{Match: match{UserMessage: question.Content, HasToolResult: &yes}, Response: response{Content: answer}, ChunkSize: 3})
		run := scriptedRun{RunID: "run-1", Messages: []message{question}}
		text := g.drive(t, shared, script{ThreadID: newThread(), Runs: []scriptedRun{run}})
		want := text.finish(t)[0]
		binary := g.drive(t, shared, script{Accept: binaryWire, Runs: []scriptedRun{run}})
		got := binary.finish(t)[0]

		wire := binaryWire
		if g.legacy {
			wire = "text/event-stream"
		}
		if got.ContentType != wire {
			t.Errorf("answered with %s, want %s", got.ContentType, wire)
		}
		wantMessages(t, want.Messages, got.Messages)
		if !slices.ContainsFunc(got.Messages, func(m message) bool { return m.Role == "tool" && m.Content == "84" }) {
			t.Errorf("no tool has answered: %+v", got.Messages)
		}
		if text, binary := text.types(0), binary.types(0); text != binary {
			t.Errorf("events %s, want %s", binary, text)
		}
	})
}
