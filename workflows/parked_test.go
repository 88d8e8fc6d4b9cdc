package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// park runs a run that is paused in its first turn to where it is parked, and returns it.
func park(t *testing.T, in runs.Input) runs.ParkedInput {
	t.Helper()
	w := setup(t)
	answers, asked := make(chan any, 1), make(chan struct{})
	w.env.RegisterDelayedCallback(func() { w.update(runs.UpdatePause, runs.Pause{}, answers); close(asked) }, time.Millisecond)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-asked; return says(10, "c"), nil }
	w.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	w.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	continuedAs(t, w.env.GetWorkflowError(), runs.TypeParked, &parked)
	if len(w.finished) != 0 {
		t.Errorf("a run that is parked was finished with %+v", w.finished)
	}
	return parked
}

// continuedAs decodes what an execution continued with.
func continuedAs(t *testing.T, err error, workflowType string, in any) {
	t.Helper()
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) || again.WorkflowType.Name != workflowType {
		t.Fatalf("it ended with %v, not by continuing as %s", err, workflowType)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, in); err != nil {
		t.Fatal(err)
	}
}

// unpark runs a parked run to where it goes on. What happens to it meanwhile happens after some
// time.
func unpark(t *testing.T, parked runs.ParkedInput, after time.Duration, happens func(*fixture)) runs.Input {
	t.Helper()
	w := setup(t)
	w.env.RegisterDelayedCallback(func() { happens(w) }, after)
	w.env.ExecuteWorkflow(runs.TypeParked, parked)
	var next runs.Input
	continuedAs(t, w.env.GetWorkflowError(), runs.TypeRun, &next)
	return next
}

// A run that is paused for long is parked, and goes on where it was; the wait is no time of its
// own.
func TestALongPauseIsParked(t *testing.T) {
	t.Parallel()
	in := input
	in.ParkAfter = time.Hour
	parked := park(t, in)
	p := parked.Run.Progress
	if p == nil || !p.Paused || p.Turn != 2 || p.Main != 11 || p.OpenStep != "tools" || !cmp.Equal(p.Lanes, []uint64{12}) {
		t.Fatalf("it is parked with %+v", p)
	}
	const weekend = 60 * time.Hour
	next := unpark(t, parked, weekend, func(w *fixture) { w.update(runs.UpdateResume, runs.Pause{RunID: "r"}, make(chan any, 1)) })
	if got := next.Progress.Deadline.Sub(p.Deadline); next.Progress.Paused || next.Progress.Cancelled || got < weekend {
		t.Fatalf("it goes on with %+v, its deadline %s later", next.Progress, got)
	}
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(20), nil }
	result, _ := w.run(next)
	if call := w.models[0]; result.Outcome != runs.OutcomeSuccess || call.ID != "2/model" || call.After != 11 || call.Execution != p.Execution {
		t.Errorf("%+v after the call %+v", result, call)
	}
}

// A parked run hears all that a run hears: a cancel, which ends it, runs that wait, or that take
// its place, and what people say to it.
func TestAParkedRunListens(t *testing.T) {
	t.Parallel()
	parked := park(t, input)
	for name, happens := range map[string]func(*fixture){
		"signal":    func(w *fixture) { w.env.SignalWorkflow(runs.SignalCancel, runs.Cancel{RunID: "r"}) },
		"Temporal":  func(w *fixture) { w.env.CancelWorkflow() },
		"interrupt": func(w *fixture) { w.offer("r2", runs.OnBusyInterrupt) },
	} {
		next := unpark(t, parked, time.Hour, happens)
		if !next.Progress.Cancelled || name == "interrupt" != (len(next.Queue) == 1) {
			t.Errorf("%s: it goes on with %+v", name, next)
		}
		next.Queue = nil
		w := setup(t)
		if result, finish := w.run(next); result.Outcome != runs.OutcomeCancelled || len(w.models) != 0 || finish.After != 11 {
			t.Errorf("%s: %+v after %d calls", name, result, len(w.models))
		}
	}
	next := unpark(t, parked, time.Hour, func(w *fixture) {
		w.env.SignalWorkflow(runs.SignalCancel, runs.Cancel{RunID: "r0"})
		w.offer("r2", runs.OnBusyEnqueue)
		w.update(runs.UpdateSteer, runs.Steer{RunID: "r", Input: 7}, make(chan any, 1))
		w.update(runs.UpdateResume, runs.Pause{}, make(chan any, 1))
	})
	if p := next.Progress; p.Cancelled || len(next.Queue) != 1 || next.Queue[0].Run.ID != "r2" || !cmp.Equal(p.Steered, []uint64{7}) {
		t.Errorf("it goes on with %+v", next)
	}
}

// A parked run that hears a lot goes on being parked, in another execution.
func TestAParkedRunContinues(t *testing.T) {
	t.Parallel()
	parked := park(t, input)
	w := setup(t)
	w.env.SetContinueAsNewSuggested(true)
	w.env.ExecuteWorkflow(runs.TypeParked, parked)
	var again runs.ParkedInput
	continuedAs(t, w.env.GetWorkflowError(), runs.TypeParked, &again)
	if diff := cmp.Diff(parked, again); diff != "" {
		t.Errorf("it goes on with (-want +got):\n%s", diff)
	}
}

// offer offers a run.
func (w *fixture) offer(id string, onBusy runs.OnBusy) {
	in := waiting(id)
	w.update(runs.UpdateSubmit, runs.Submit{RunID: id, Digest: in.Digest, OnBusy: onBusy, Offer: &in}, make(chan any, 1))
}
