package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// TestPauseDuringCall: a pause during a call takes effect before the next call, however long the
// pause lasts.
func TestPauseDuringCall(t *testing.T) {
	t.Parallel()
	for pause, executions := range map[time.Duration]int{time.Minute: 1, 20 * time.Minute: 2} {
		for _, during := range []string{"advance/1", "advance/2"} {
			f := setupPipeline(t, `steps: [{name: one, tool: one}, {name: two, tool: two}]`)
			at := map[string]time.Time{}
			f.executeStep = func(path string) (pipeline.Event, error) {
				at[path] = f.execution.env.Now()
				return doneEvent(`1`), nil
			}
			resume := func(execution *fixture) {
				execution.env.RegisterDelayedCallback(func() { execution.update(runs.UpdateResume, runs.PauseRequest{}, make(chan any, 1)) }, pause)
			}
			var paused time.Time
			f.failBeforeAdvance = func(in runs.AdvanceInput) error {
				if in.ID == during {
					paused = f.execution.env.Now()
					f.execution.update(runs.UpdatePause, runs.PauseRequest{}, make(chan any, 1))
					resume(f.execution)
				}
				return nil
			}
			f.onExecution = func(execution *fixture, in any) {
				if _, parked := in.(*runs.ParkedInput); parked {
					resume(execution)
				}
			}
			f.wantResult(f.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "one", "two")
			if at["two"].Sub(paused) < pause {
				t.Errorf("paused in %s for %s: the next call begins after %s, want at least %s", during, pause, at["two"].Sub(paused), pause)
			}
			wantEqual(t, fmt.Sprintf("paused in %s for %s: number of executions", during, pause), len(f.executions), executions)
		}
	}
}

// journey is a pipeline with compensations.
const journey = `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: pay, tool: pay, compensate: {tool: refund}}
  - {name: ship, tool: ship}
`

// TestLostAnswers: a call or an advance that was recorded counts once, even if its worker died before
// the workflow received the answer.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events      map[string]string
		cancelAt    string // the run is cancelled as the call at this path ends
		wantOutcome runs.Outcome
		wantCode    string
		wantPaths   string
	}{
		"none fails":            {nil, "", runs.OutcomeSuccess, "", "book pay ship"},
		"one fails":             {map[string]string{"ship": "!lost"}, "", runs.OutcomeError, "lost", "book pay ship pay~undo book~undo"},
		"cancelled at first":    {nil, "book", runs.OutcomeCancelled, "", "book book~undo"},
		"cancelled later":       {nil, "pay", runs.OutcomeCancelled, "", "book pay pay~undo book~undo"},
		"cancelled at the end":  {nil, "ship", runs.OutcomeCancelled, "", "book pay ship pay~undo book~undo"},
		"cancelled as it fails": {map[string]string{"ship": "!lost"}, "ship", runs.OutcomeCancelled, "", "book pay ship pay~undo book~undo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, journey)
			fixture.executeStep = eventsByPath(c.events)
			fixture.loseAnswer = func(s runs.Step) bool {
				if s.PipelineStep != nil && s.PipelineStep.Path == c.cancelAt {
					fixture.cancelRun()
				}
				return true
			}
			fixture.wantResult(fixture.runToEnd(stepsInput()), c.wantOutcome, c.wantCode, strings.Fields(c.wantPaths)...)
		})
	}
}
