package approvals

import (
	"fmt"
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestHooksForLegacyInterrupts: useLangGraphInterrupt is CopilotKit's hook for the custom event
// on_interrupt. A page answers it with any value, mostly a text. react-core 1.54 sends the answer
// in a command without an interrupt id, under a new run id. 1.74 sends it in resume, under the id
// of the run that asked, with a tool message of its own. The tests use CopilotKit's runtime in
// between.
func TestHooksForLegacyInterrupts(t *testing.T) {
	t.Parallel()
	runtime := kit.StartCopilotKit(t, "default", kit.Shared.URL("/v1/agents/asker-legacy/runs"))
	for name, answer := range map[string]func(q kit.Interrupt, n int, payload any) kit.ScriptedRun{
		"command": func(_ kit.Interrupt, n int, payload any) kit.ScriptedRun {
			props := map[string]any{"command": map[string]any{"resume": payload}}
			return kit.ScriptedRun{RunID: fmt.Sprint("run-", 2+n), Parameters: map[string]any{"forwardedProps": props}}
		},
		"resume": func(q kit.Interrupt, _ int, payload any) kit.ScriptedRun {
			entry := map[string]any{"interruptId": q.ID, "status": "resolved", "payload": payload}
			run := kit.ScriptedRun{RunID: "run-1", Parameters: map[string]any{"resume": []any{entry}}}
			if q.Reason == "tool_call" {
				run.Add = []kit.Message{{ID: kit.Marked("made up"), Role: "tool", ToolCallID: q.ToolCallID, Content: "true"}}
			}
			return run
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blue := kit.Marked("blue")
			for _, c := range []struct {
				question string
				payloads []any
				want     string
			}{
				{"Which color?", []any{blue}, blue},
				{"How many?", []any{`{"answer":"42"}`}, "42"},
				{"approve me: which color?", []any{true, map[string]any{"answer": blue}}, blue},
				{"approve me: which color?", []any{"false"}, "The approver rejected this call. It was not made."},
			} {
				prompt, thread := kit.Marked("Paint it."), kit.NewThread()
				scriptQuestions(t, prompt, kit.Marked("Painted."), questionCall(c.question))
				page, ends := runtime.Run(t, thread, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{kit.UserMessage(prompt)}})
				for n, payload := range c.payloads {
					asked := kit.InterruptsOf(t, []kit.Event{{Data: page.Events(0, "RUN_FINISHED")[0]}})
					run := answer(asked[0], n, payload)
					run.Messages = ends[0].Messages
					page, ends = runtime.Run(t, thread, run)
				}
				if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{c.want}) {
					t.Errorf("%s, answered with %v: results sent to the model = %q, want %q", c.question, c.payloads, got, c.want)
				}
			}
		})
	}
}
