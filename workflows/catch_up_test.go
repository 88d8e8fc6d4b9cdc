package workflows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

// TestCancelAfterLostTask: a worker dies within a workflow task, after some steps of it were recorded,
// and the run is cancelled before Temporal repeats the task. What the lost task has done counts, and is
// compensated for.
func TestCancelAfterLostTask(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: pay, tool: pay, compensate: {tool: refund}}
  - {name: ship, tool: ship}
`
	calm := setupPipeline(t, steps)
	calm.runToEnd(stepsInput())
	mustEqual(t, "number of calls", len(calm.calls), 3)
	mustEqual(t, "number of advances", len(calm.advances), 4)
	for done, want := range []string{
		"", "", "book book~undo", "book book~undo", "book pay pay~undo book~undo", "book pay pay~undo book~undo", "book pay ship", "book pay ship",
	} {
		t.Run(fmt.Sprintf("%d steps", done), func(t *testing.T) {
			t.Parallel()
			f := setupPipeline(t, steps)
			for i := range done { // what the lost task has done
				var err error
				if i%2 == 0 {
					_, err = f.advance(calm.advances[i/2])
				} else {
					_, err = f.callTool(calm.calls[i/2])
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			f.onExecution = func(execution *fixture, _ any) { execution.env.RegisterDelayedCallback(f.cancelRun, 0) }
			outcome := runs.OutcomeCancelled
			if done >= 6 { // the lost task has done the last step
				outcome = runs.OutcomeSuccess
			}
			f.wantResult(f.runToEnd(stepsInput()), outcome, "", strings.Fields(want)...)
		})
	}
}
