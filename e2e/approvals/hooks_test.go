package approvals

import (
	"fmt"
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// CopilotKit's hook for the custom event on_interrupt, useLangGraphInterrupt, has a page answer
// with whatever it likes, mostly a text, and sends that on: before it knew AG-UI's interrupts
// (react-core 1.54) in a command that does not say what it answers, under a new run id; since then
// (1.74) in resume, under the id of the run that asked, with a result of its own making beside it.
// The runtime in between is CopilotKit's.
func TestHooksForLegacyInterrupts(t *testing.T) {
	t.Parallel()
	runtime := kit.LaunchCopilotKit(t, "default", kit.Shared.Url("/v1/agents/asker-legacy/runs"))
	for name, answer := range map[string]func(q kit.Interrupt, n int, payload any) kit.ScriptedRun{
		"command": func(_ kit.Interrupt, n int, payload any) kit.ScriptedRun {
			props := map[string]any{"command": map[string]any{"resume": payload}}
			return kit.ScriptedRun{RunID: fmt.Sprint("run-", 2+n), Parameters: map[string]any{"forwardedProps": props}}
		},
		"resume": func(q kit.Interrupt, _ int, payload any) kit.ScriptedRun {
			entry := map[string]any{"interruptId": q.ID, "status": "resolved", "payload": payload}
			run := kit.ScriptedRun{RunID: "run-1", Parameters: map[string]any{"resume": []any{entry}}}
			if q.Reason == "tool_call" {
				run.Add = []kit.Message{{ID: kit.Say("made up"), Role: "tool", ToolCallID: q.ToolCallID, Content: "true"}}
			}
			return run
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blue := kit.Say("blue")
			for _, c := range []struct {
				question string
				payloads []any
				heard    string
			}{
				{"Which color?", []any{blue}, blue},
				{"How many?", []any{`{"answer":"42"}`}, "42"},
				{"approve me: which color?", []any{true, map[string]any{"answer": blue}}, blue},
				{"approve me: which color?", []any{"false"}, "A person did not approve this call. It was not made."},
			} {
				prompt, thread := kit.Say("Paint it."), kit.NewThread()
				asksUser(t, prompt, kit.Say("Painted."), askUser(c.question))
				page, ends := runtime.Talk(t, thread, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{kit.User(prompt)}})
				for n, payload := range c.payloads {
					asked := kit.InterruptsOf(t, []kit.Event{{Data: page.Events(0, "RUN_FINISHED")[0]}})
					run := answer(asked[0], n, payload)
					run.Messages = ends[0].Messages
					page, ends = runtime.Talk(t, thread, run)
				}
				if got := kit.ResultsOf(t, prompt); !slices.Equal(got, []string{c.heard}) {
					t.Errorf("%s, answered with %v: the model heard %q", c.question, c.payloads, got)
				}
			}
		})
	}
}
