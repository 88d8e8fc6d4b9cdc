package workflows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

// TestStopAfterLostTask: a worker dies within a workflow task, after some steps of it were recorded, and
// the run is cancelled, or its time is over, before Temporal repeats the task. What the lost task has
// done counts, and is compensated for.
func TestStopAfterLostTask(t *testing.T) {
	t.Parallel()
	calm := setupPipeline(t, journey)
	calm.runToEnd(stepsInput())
	mustEqual(t, "number of calls", len(calm.calls), 3)
	mustEqual(t, "number of advances", len(calm.advances), 4)
	for done, want := range []string{
		"", "", "book book~undo", "book book~undo", "book pay pay~undo book~undo", "book pay pay~undo book~undo", "book pay ship", "book pay ship",
	} {
		for reason, outcome := range map[string]runs.Outcome{"": runs.OutcomeCancelled, runs.CodeLimitDuration: runs.OutcomeError} {
			t.Run(fmt.Sprintf("%d steps %s", done, reason), func(t *testing.T) {
				t.Parallel()
				f, in := setupPipeline(t, journey), stepsInput()
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
				if reason == "" {
					f.onExecution = func(execution *fixture, _ any) { execution.env.RegisterDelayedCallback(f.cancelRun, 0) }
				} else {
					in.Limits.Duration = 0
				}
				code := reason
				if done >= 6 { // the lost task has done the last step
					outcome, code = runs.OutcomeSuccess, ""
				}
				f.wantResult(f.runToEnd(in), outcome, code, strings.Fields(want)...)
			})
		}
	}
}
