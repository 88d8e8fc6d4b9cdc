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

// park executes a run that is paused in its first turn until it is parked, and returns the parked
// input.
func park(t *testing.T, in runs.Input) runs.ParkedInput {
	t.Helper()
	w := setup(t)
	answers, asked := make(chan any, 1), make(chan struct{})
	w.env.RegisterDelayedCallback(func() { w.update(runs.UpdatePause, runs.PauseRequest{}, answers); close(asked) }, time.Millisecond)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-asked; return says(10, "c"), nil }
	w.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	w.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	continuedAs(t, w.env.GetWorkflowError(), runs.TypeParked, &parked)
	if len(w.finished) != 0 {
		t.Errorf("parked run: got the end %+v, want none", w.finished)
	}
	return parked
}

// continuedAs decodes the input that an execution continued with.
func continuedAs(t *testing.T, err error, workflowType string, in any) {
	t.Helper()
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) || again.WorkflowType.Name != workflowType {
		t.Fatalf("got the end %v, want continue-as-new as %s", err, workflowType)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, in); err != nil {
		t.Fatal(err)
	}
}

// unpark executes a parked run until it continues as a run. It calls happens after some time.
func unpark(t *testing.T, parked runs.ParkedInput, after time.Duration, happens func(*fixture)) runs.Input {
	t.Helper()
	w := setup(t)
	w.env.RegisterDelayedCallback(func() { happens(w) }, after)
	w.env.ExecuteWorkflow(runs.TypeParked, parked)
	var next runs.Input
	continuedAs(t, w.env.GetWorkflowError(), runs.TypeRun, &next)
	return next
}

// TestALongPauseIsParked: a run that is paused for long is parked, and continues at the same
// position. The pause does not count against its deadline.
func TestALongPauseIsParked(t *testing.T) {
	t.Parallel()
	in := input
	in.ParkAfter = time.Hour
	parked := park(t, in)
	p := parked.Run.Progress
	if p == nil || !p.Paused || p.Turn != 2 || p.Main != 11 || p.OpenStep != "tools" || !cmp.Equal(p.Lanes, []uint64{12}) {
		t.Fatalf("progress of the parked run: got %+v", p)
	}
	const weekend = 60 * time.Hour
	next := unpark(t, parked, weekend, func(w *fixture) { w.update(runs.UpdateResume, runs.PauseRequest{RunID: "r"}, make(chan any, 1)) })
	if got := next.Progress.Deadline.Sub(p.Deadline); next.Progress.Paused || next.Progress.Cancelled || got < weekend {
		t.Fatalf("progress of the next execution: got %+v, its deadline %s later", next.Progress, got)
	}
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(20), nil }
	result, _ := w.run(next)
	if call := w.models[0]; result.Outcome != runs.OutcomeSuccess || call.ID != "2/model" || call.After != 11 || call.Execution != p.Execution {
		t.Errorf("got %+v after the call %+v", result, call)
	}
}

// TestAParkedRunListens: a parked run accepts all that a run accepts: a cancel, queued and
// interrupting runs, and steering inputs.
func TestAParkedRunListens(t *testing.T) {
	t.Parallel()
	parked := park(t, input)
	for name, happens := range map[string]func(*fixture){
		"signal":    func(w *fixture) { w.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"}) },
		"Temporal":  func(w *fixture) { w.env.CancelWorkflow() },
		"interrupt": func(w *fixture) { w.offer("r2", runs.OnBusyInterrupt) },
	} {
		next := unpark(t, parked, time.Hour, happens)
		if !next.Progress.Cancelled || name == "interrupt" != (len(next.Queue) == 1) {
			t.Errorf("%s: next execution: got %+v", name, next)
		}
		next.Queue = nil
		w := setup(t)
		if result, finish := w.run(next); result.Outcome != runs.OutcomeCancelled || len(w.models) != 0 || finish.After != 11 {
			t.Errorf("%s: got %+v after %d model calls", name, result, len(w.models))
		}
	}
	next := unpark(t, parked, time.Hour, func(w *fixture) {
		w.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r0"})
		w.offer("r2", runs.OnBusyEnqueue)
		w.update(runs.UpdateSteer, runs.SteerRequest{RunID: "r", Input: 7}, make(chan any, 1))
		w.update(runs.UpdateResume, runs.PauseRequest{}, make(chan any, 1))
	})
	if p := next.Progress; p.Cancelled || len(next.Queue) != 1 || next.Queue[0].Run.ID != "r2" || !cmp.Equal(p.Steered, []uint64{7}) {
		t.Errorf("next execution: got %+v", next)
	}
}

// TestAParkedRunContinues: a parked run with a long history continues as new, still parked.
func TestAParkedRunContinues(t *testing.T) {
	t.Parallel()
	parked := park(t, input)
	w := setup(t)
	w.env.SetContinueAsNewSuggested(true)
	w.env.ExecuteWorkflow(runs.TypeParked, parked)
	var again runs.ParkedInput
	continuedAs(t, w.env.GetWorkflowError(), runs.TypeParked, &again)
	if diff := cmp.Diff(parked, again); diff != "" {
		t.Errorf("next execution (-want +got):\n%s", diff)
	}
}

// offer submits a run.
func (w *fixture) offer(id string, onBusy runs.OnBusy) {
	in := waiting(id)
	w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: id, Digest: in.Digest, OnBusy: onBusy, Offer: &in}, make(chan any, 1))
}
