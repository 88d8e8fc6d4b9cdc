package workflows_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// TestPipelineContinuesAsNew: between steps a run with a long history continues as new at its
// position, with the failures, waits and compensations that it has.
func TestPipelineContinuesAsNew(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: try, agent: one, retry: {attempts: 2, interval: 1h}}
  - {name: live, tool: two, onError: continue}
  - {name: ship, tool: ship}
`)
	fixture.executeStep = eventsByPath(map[string]string{"try": "*gone", "live": "*away", "ship": "!lost"})
	fixture.historyIsLong = func() bool { return true }
	fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeError, "lost", "book", "try", "try~2", "live", "ship", "book~undo")
	if len(fixture.executions) != 8 { // after each advance that has another action, and before each turn of an agent
		t.Errorf("executions: got %d, want 8", len(fixture.executions))
	}
	for i, in := range fixture.executions[1:] {
		p := in.Progress
		if p == nil {
			t.Fatalf("progress of execution %d: p = nil, want a value", i+1)
		}
		if p.Position == nil {
			t.Fatalf("progress of execution %d: position = nil, want a value", i+1)
		}
		if p.Main == 0 {
			t.Errorf("progress of execution %d: last record of the main lane = %v, want not 0", i+1, p.Main)
		}
		wantEqual(t, fmt.Sprintf("progress of execution %d: deadline", i+1), p.Deadline, fixture.executions[1].Progress.Deadline)
		if len(in.Progress.Position.TreePosition.Undo) == 0 && i > 0 {
			t.Errorf("progress of execution %d: no compensations, want those of the finished steps", i+1)
		}
	}
	var ids []string
	for _, a := range fixture.advances {
		ids = append(ids, a.ID)
	}
	wantEqual(t, "IDs of the advances without repeats", slices.Compact(slices.Sorted(slices.Values(ids))), slices.Sorted(slices.Values(ids)))
}

// TestPauseBetweenSteps: a run that is paused between steps takes no step until it is resumed. A
// long pause parks the run.
func TestPauseBetweenSteps(t *testing.T) {
	t.Parallel()
	for pause, executions := range map[time.Duration]int{time.Minute: 1, 20 * time.Minute: 2} {
		f := setupPipeline(t, booking)
		var at []time.Time
		f.executeStep = func(path string) (pipeline.Event, error) {
			execution := f.execution
			if at = append(at, execution.env.Now()); path == "book" {
				execution.update(runs.UpdatePause, runs.PauseRequest{}, make(chan any, 1))
				execution.env.RegisterDelayedCallback(func() { execution.update(runs.UpdateResume, runs.PauseRequest{}, make(chan any, 1)) }, pause)
			}
			return doneEvent(`1`), nil
		}
		in := stepsInput()
		f.onExecution = func(execution *fixture, in any) {
			if _, parked := in.(*runs.ParkedInput); !parked {
				return
			}
			execution.env.RegisterDelayedCallback(func() { execution.update(runs.UpdateResume, runs.PauseRequest{}, make(chan any, 1)) }, pause)
		}
		f.wantResult(f.runToEnd(in), runs.OutcomeSuccess, "", "book", "pay", "ship")
		if took := at[1].Sub(at[0]); took < pause || len(f.executions) != executions {
			t.Errorf("pause of %s: got %s, in %d executions, want %d", pause, took, len(f.executions), executions)
		}
		if f.advances[len(f.advances)-1].Position.TreePosition.Undoing != nil {
			t.Errorf("last advance: step to undo = %+v, want nil", f.advances[len(f.advances)-1].Position.TreePosition.Undoing)
		}
	}
}

// TestPipelineReachesLimit: a run that reaches a limit compensates for its work and ends with the
// limit's code. All steps share the limits of tokens and time. Compensations have their own.
func TestPipelineReachesLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps     string
		limit     func(*runs.Limits)
		events    map[string]string
		wantCode  string
		wantPaths string
	}{
		"tokens": {booking, func(l *runs.Limits) { l.Tokens = 0 }, nil, runs.CodeLimitTokens, "book pay pay~undo book~undo"},
		"time":   {booking, func(l *runs.Limits) { l.Duration = 0 }, nil, runs.CodeLimitDuration, ""},
		"time while a step works": {
			booking, func(l *runs.Limits) { l.Duration = slowStep / 2 }, map[string]string{"pay": "slow"}, runs.CodeLimitDuration, "book pay pay~undo book~undo",
		},
		"time for the last": {booking, func(l *runs.Limits) { l.Duration = slowStep / 2 }, map[string]string{"ship": "slow"}, "", "book pay ship"},
		"time between tries": {`
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: ship, tool: ship, retry: {attempts: 2, interval: 1h}}
`, func(l *runs.Limits) { l.Duration = time.Minute }, map[string]string{"ship": "!lost"}, runs.CodeLimitDuration, "book ship book~undo"},
		"time to compensate": {`
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: pay, tool: pay, compensate: {tool: refund, retry: {attempts: 2, interval: 1h}}}
  - {name: ship, tool: ship}
`, func(l *runs.Limits) { l.Duration = time.Minute }, map[string]string{"ship": "!lost", "pay~undo": "!stuck"}, "lost", "book pay ship pay~undo"},
		"time to compensate again": {`
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: pay, tool: pay, compensate: {tool: refund, retry: {attempts: 2, interval: 5m}}}
  - {name: ship, tool: ship}
`, func(l *runs.Limits) { l.Duration = time.Minute }, map[string]string{"ship": "!lost", "pay~undo": "!stuck"}, "lost", "book pay ship pay~undo pay~undo~2 book~undo"},
		"time to compensate for a cancelled run": {`
steps:
  - {name: book, tool: book, compensate: {tool: cancel, retry: {attempts: 2, interval: 1h}}}
  - {name: ship, tool: ship}
`, func(*runs.Limits) {}, map[string]string{"ship": "?", "book~undo": "!stuck"}, "cancelled", "book ship book~undo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupPipeline(t, c.steps)
			fixture.executeStep = func(path string) (pipeline.Event, error) {
				if c.events[path] == "slow" {
					fixture.awaitTime(slowStep)
					return doneEvent(`1`), nil
				}
				return eventsByPath(c.events)(path)
			}
			in, outcome := stepsInput(), runs.OutcomeError
			c.limit(&in.Limits)
			if c.wantCode == "" {
				outcome = runs.OutcomeSuccess
			} else if c.wantCode == "cancelled" {
				outcome, c.wantCode = runs.OutcomeCancelled, ""
			}
			fixture.wantResult(fixture.runToEnd(in), outcome, c.wantCode, strings.Fields(c.wantPaths)...)
		})
	}
}

// slowStep is the duration of a slow step, in real time: the workflow waits for activities.
const slowStep = 100 * time.Millisecond

// awaitTime waits until the workflow's time has advanced.
func (f *pipelineFixture) awaitTime(d time.Duration) {
	later := make(chan struct{})
	f.execution.env.RegisterDelayedCallback(func() { close(later) }, d)
	<-later
}

// TestFencedPipelineEnds: a run whose log is fenced or has lost records ends without further
// steps.
func TestFencedPipelineEnds(t *testing.T) {
	t.Parallel()
	for _, code := range []string{runs.ErrorFenced, runs.ErrorLogLost} {
		fixture := setupPipeline(t, booking)
		fixture.executeStep = eventsByPath(map[string]string{"pay": "*" + code})
		fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeError, code, "book", "pay")
	}
}

// TestFailedAdvanceEndsRun: a failed advance ends the run, because the next step is unknown.
func TestFailedAdvanceEndsRun(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, booking)
	asked := 0
	fixture.failBeforeAdvance = func(in runs.AdvanceInput) error {
		if in.ID == "advance/2" {
			asked++
			return temporal.NewNonRetryableApplicationError("it cannot", "broken", errors.New("why"))
		}
		return nil
	}
	if fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeError, "broken", "book"); asked != 1 {
		t.Errorf("attempts of the advance: got %d, want 1", asked)
	}
}

// TestAdvanceAfterStepTimeout: the advance after a step's timeout succeeds, even if the log
// is down for a while at that time.
func TestAdvanceAfterStepTimeout(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `steps: [{name: one, tool: one, timeout: 2s, onError: continue}, {name: two, tool: two}]`)
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		if path == "one" {
			return pipeline.Event{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)
		}
		return doneEvent(`1`), nil
	}
	refused := 0
	fixture.failBeforeAdvance = func(in runs.AdvanceInput) error {
		if in.ID != "advance/2" || refused == 4 {
			return nil
		}
		refused++
		return temporal.NewApplicationError("the log is unavailable", "log_unavailable")
	}
	fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "one", "two")
	if refused != 4 {
		t.Errorf("refusals of the advance: got %d, want 4", refused)
	}
}

// TestStepTimeoutDuringOutage: a step whose worker is down when its timeout passes fails with
// the timeout.
func TestStepTimeoutDuringOutage(t *testing.T) {
	t.Parallel()
	fixture := setupPipeline(t, `steps: [{name: one, tool: one, timeout: 2s, onError: continue}, {name: two, tool: two}]`)
	fixture.executeStep = func(path string) (pipeline.Event, error) {
		if path == "one" {
			return pipeline.Event{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, temporal.NewApplicationError("", "worker_lost"))
		}
		return doneEvent(`1`), nil
	}
	fixture.wantResult(fixture.runToEnd(stepsInput()), runs.OutcomeSuccess, "", "one", "two")
	if failure := fixture.advances[1].Position.Event.Failure; failure == nil || failure.Code != "timeout" {
		t.Errorf("failure: got %+v, want the code timeout", failure)
	}
}
