package workflows_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// Between steps a run continues as new when its history is long, and goes on where it is: also with
// what failed, what it waits for and what it has to compensate for.
func TestStepsContinueAsNew(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - {name: book, tool: book, compensate: {tool: cancel}}
  - {name: try, agent: one, retry: {attempts: 2, interval: 1h}}
  - {name: live, tool: two, onError: continue}
  - {name: ship, tool: ship}
`)
	k.answer = byPath(map[string]string{"try": "*gone", "live": "*away", "ship": "!lost"})
	k.renews = func() bool { return true }
	k.want(k.walk(stepsInput()), runs.OutcomeError, "lost", "book", "try", "try~2", "live", "ship", "book~undo")
	if len(k.runs) != 6 { // behind calls that have gone on or failed, where an agent is about to begin, and when it has waited
		t.Errorf("there were %d executions", len(k.runs))
	}
	for i, in := range k.runs[1:] {
		p := in.Progress
		if p == nil || p.Position == nil || p.Main == 0 || p.Deadline != k.runs[1].Progress.Deadline || len(in.Progress.Position.Cursor.Undo) == 0 && i > 0 {
			t.Errorf("execution %d goes on with %+v", i+1, p)
		}
	}
	var ids []string
	for _, a := range k.advances {
		ids = append(ids, a.ID)
	}
	if !slices.Equal(slices.Compact(slices.Sorted(slices.Values(ids))), slices.Sorted(slices.Values(ids))) {
		t.Errorf("advances have the same ids: %q", ids)
	}
}

// A run that is paused among its steps does nothing until it goes on, and is parked if that takes
// long.
func TestStepsPause(t *testing.T) {
	t.Parallel()
	for pause, executions := range map[time.Duration]int{time.Minute: 1, 20 * time.Minute: 2} {
		k := setupPipeline(t, booking)
		var at []time.Time
		k.answer = func(path string) (pipeline.Event, error) {
			w := k.fixture
			if at = append(at, w.env.Now()); path == "book" {
				w.update(runs.UpdatePause, runs.Pause{}, make(chan any, 1))
				w.env.RegisterDelayedCallback(func() { w.update(runs.UpdateResume, runs.Pause{}, make(chan any, 1)) }, pause)
			}
			return done(`1`), nil
		}
		in := stepsInput()
		k.begun = func(w *fixture, in any) {
			if _, parked := in.(*runs.ParkedInput); !parked {
				return
			}
			w.env.RegisterDelayedCallback(func() { w.update(runs.UpdateResume, runs.Pause{}, make(chan any, 1)) }, pause)
		}
		k.want(k.walk(in), runs.OutcomeSuccess, "", "book", "pay", "ship")
		if took := at[1].Sub(at[0]); took < pause || len(k.runs) != executions {
			t.Errorf("a pause of %s took %s, in %d executions", pause, took, len(k.runs))
		}
		if end := k.advances[len(k.advances)-1]; end.Position.Cursor.Undoing != nil {
			t.Errorf("it ends with %+v", end.Position)
		}
	}
}

// A run that reaches a limit compensates for what it has done, and says which limit it was. Tokens
// and time are those of all steps together, and what compensates has time and tokens of its own.
func TestStepsAtALimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps   string
		limit   func(*runs.Limits)
		answers map[string]string
		code    string
		did     string
	}{
		"tokens": {booking, func(l *runs.Limits) { l.Tokens = 0 }, nil, runs.CodeLimitTokens, "book pay pay~undo book~undo"},
		"time":   {booking, func(l *runs.Limits) { l.Duration = 0 }, nil, runs.CodeLimitDuration, ""},
		"time while a step works": {
			booking, func(l *runs.Limits) { l.Duration = slow / 2 }, map[string]string{"pay": "slow"}, runs.CodeLimitDuration, "book pay pay~undo book~undo",
		},
		"time for the last": {booking, func(l *runs.Limits) { l.Duration = slow / 2 }, map[string]string{"ship": "slow"}, "", "book pay ship"},
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
			k := setupPipeline(t, c.steps)
			k.answer = func(path string) (pipeline.Event, error) {
				if c.answers[path] == "slow" {
					k.wait(slow)
					return done(`1`), nil
				}
				return byPath(c.answers)(path)
			}
			in, outcome := stepsInput(), runs.OutcomeError
			c.limit(&in.Limits)
			if c.code == "" {
				outcome = runs.OutcomeSuccess
			} else if c.code == "cancelled" {
				outcome, c.code = runs.OutcomeCancelled, ""
			}
			k.want(k.walk(in), outcome, c.code, strings.Fields(c.did)...)
		})
	}
}

// slow is how long a step takes that takes long, in real time: activities are waited for.
const slow = 100 * time.Millisecond

// wait waits until it is later for the workflow.
func (k *pipelineFixture) wait(d time.Duration) {
	later := make(chan struct{})
	k.fixture.env.RegisterDelayedCallback(func() { close(later) }, d)
	<-later
}

// The log tells a run that it is in other hands, or has lost something: then there is nothing left
// to do.
func TestStepsOfARunThatIsLost(t *testing.T) {
	t.Parallel()
	for _, code := range []string{runs.ErrorFenced, runs.ErrorLogLost} {
		k := setupPipeline(t, booking)
		k.answer = byPath(map[string]string{"pay": "*" + code})
		k.want(k.walk(stepsInput()), runs.OutcomeError, code, "book", "pay")
	}
}

// What fails at an advance itself ends the run: nobody knows the way.
func TestAnAdvanceFails(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, booking)
	asked := 0
	k.refuse = func(in runs.Advance) error {
		if in.ID == "advance/2" {
			asked++
			return temporal.NewNonRetryableApplicationError("it cannot", "broken", errors.New("why"))
		}
		return nil
	}
	if k.want(k.walk(stepsInput()), runs.OutcomeError, "broken", "book"); asked != 2 { // by the call before, and by the workflow
		t.Errorf("it is asked for %d times", asked)
	}
}

// A step whose time is over is got over, also if the log is down for a while just then.
func TestAdvancesOutlastTheTimeOfSteps(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `steps: [{name: one, tool: one, timeout: 2s, onError: continue}, {name: two, tool: two}]`)
	k.answer = func(path string) (pipeline.Event, error) {
		if path == "one" {
			return pipeline.Event{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)
		}
		return done(`1`), nil
	}
	refused := 0
	k.refuse = func(in runs.Advance) error {
		if in.ID != "advance/2" || refused == 4 {
			return nil
		}
		refused++
		return temporal.NewApplicationError("the log is unavailable", "log_unavailable")
	}
	k.want(k.walk(stepsInput()), runs.OutcomeSuccess, "", "one", "two")
	if refused != 4 {
		t.Errorf("the advance was refused %d times", refused)
	}
}

// A step whose worker was down when its time was over has failed with the time, as it would have
// otherwise.
func TestStepsAreLateWhateverWasDown(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `steps: [{name: one, tool: one, timeout: 2s, onError: continue}, {name: two, tool: two}]`)
	k.answer = func(path string) (pipeline.Event, error) {
		if path == "one" {
			return pipeline.Event{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, temporal.NewApplicationError("", "worker_lost"))
		}
		return done(`1`), nil
	}
	k.want(k.walk(stepsInput()), runs.OutcomeSuccess, "", "one", "two")
	if f := k.advances[1].Position.Event.Failure; f == nil || f.Code != "timeout" {
		t.Errorf("it fails with %+v, want the code timeout", f)
	}
}
