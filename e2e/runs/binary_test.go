package runs

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

const binaryWire = "application/vnd.ag-ui.event+proto"

// TestBinaryEvents: a stock client that asks for the binary wire sees the same as over SSE. The
// older generation does not support it: its decoder fails at tool results.
func TestBinaryEvents(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		yes, no := true, false
		question, thought, answer := kit.UserMessage(kit.Marked("How much?")), kit.Marked("Calculate, 計算."), kit.Marked("Grüße, 世界 🌍: it is 84.")
		call := kit.ModelCall{ID: "call_a", Name: "calculate", Arguments: `{"expression":"12*7"}`}
		kit.SharedModel.Answer(t,
			kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &no}, Response: kit.Response{Reasoning: thought, ToolCalls: []kit.ModelCall{call}}},
			kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &yes}, Response: kit.Response{Content: answer}, ChunkSize: 3})
		run := kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{question}}
		text := g.Drive(t, kit.Shared, kit.Script{ThreadID: kit.NewThread(), Runs: []kit.ScriptedRun{run}})
		want := text.Finish(t)[0]
		binary := g.Drive(t, kit.Shared, kit.Script{Accept: binaryWire, Runs: []kit.ScriptedRun{run}})
		got := binary.Finish(t)[0]

		wire := binaryWire
		if g.Legacy {
			wire = "text/event-stream"
		}
		if got.ContentType != wire {
			t.Errorf("answered with %s, want %s", got.ContentType, wire)
		}
		kit.WantMessages(t, want.Messages, got.Messages)
		if !slices.ContainsFunc(got.Messages, func(m kit.Message) bool { return m.Role == "tool" && m.Content == "84" }) {
			t.Errorf("messages = %+v, want the result 84", got.Messages)
		}
		if text, binary := text.Types(0), binary.Types(0); text != binary {
			t.Errorf("events %s, want %s", binary, text)
		}
	})
}
