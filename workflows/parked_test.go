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

// runUntilParked executes a run that is paused in its first turn until it is parked, and returns
// the parked input.
func runUntilParked(t *testing.T, in runs.Input) runs.ParkedInput {
	t.Helper()
	fixture := setup(t)
	answers, modelCalled := make(chan any, 1), make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() { fixture.update(runs.UpdatePause, runs.PauseRequest{}, answers); close(modelCalled) }, time.Millisecond)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-modelCalled; return modelAnswer(10, "c"), nil }
	fixture.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	fixture.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	if len(fixture.finished) != 0 {
		t.Errorf("parked run: got the end %+v, want none", fixture.finished)
	}
	return parked
}

// decodeContinuation decodes the input that an execution continued with.
func decodeContinuation(t *testing.T, err error, workflowType string, in any) {
	t.Helper()
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) || again.WorkflowType.Name != workflowType {
		t.Fatalf("got the end %v, want continue-as-new as %s", err, workflowType)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, in); err != nil {
		t.Fatal(err)
	}
}

// runParked executes a parked run until it continues as a run. It calls happens after some time.
func runParked(t *testing.T, parked runs.ParkedInput, after time.Duration, act func(*fixture)) runs.Input {
	t.Helper()
	fixture := setup(t)
	fixture.env.RegisterDelayedCallback(func() { act(fixture) }, after)
	fixture.env.ExecuteWorkflow(runs.TypeParked, parked)
	var next runs.Input
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeRun, &next)
	return next
}

// TestLongPauseIsParked: a run that is paused for long is parked, and continues at the same
// position. The pause does not count against its deadline.
func TestLongPauseIsParked(t *testing.T) {
	t.Parallel()
	in := input
	in.ParkAfter = time.Hour
	parked := runUntilParked(t, in)
	p := parked.Run.Progress
	if p == nil {
		t.Fatal("progress of the parked run = nil, want a value")
	}
	mustEqual(t, "progress of the parked run: is paused", p.Paused, true)
	mustEqual(t, "progress of the parked run: turn", p.Turn, 2)
	mustEqual(t, "progress of the parked run: last record of the main lane", p.Main, 11)
	mustEqual(t, "progress of the parked run: open step", p.OpenStep, "tools")
	mustEqual(t, "progress of the parked run: lanes", p.Lanes, []uint64{12})
	const weekend = 60 * time.Hour
	next := runParked(t, parked, weekend, func(f *fixture) { f.update(runs.UpdateResume, runs.PauseRequest{RunID: "r"}, make(chan any, 1)) })
	got := next.Progress.Deadline.Sub(p.Deadline)
	mustEqual(t, "progress of the next execution: is paused", next.Progress.Paused, false)
	mustEqual(t, "progress of the next execution: is cancelled", next.Progress.Cancelled, false)
	if got < weekend {
		t.Errorf("the deadline moved by %v, want at least %v", got, weekend)
	}
	f := setup(t)
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(20), nil }
	result, _ := f.run(next)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "ID of the model call", f.modelCalls[0].ID, "2/model")
	wantEqual(t, "record before the model call", f.modelCalls[0].After, 11)
	wantEqual(t, "execution of the model call", f.modelCalls[0].Execution, p.Execution)
}

// TestParkedRunAcceptsUpdates: a parked run accepts all that a run accepts: a cancel, queued and
// interrupting runs, and steering inputs.
func TestParkedRunAcceptsUpdates(t *testing.T) {
	t.Parallel()
	parked := runUntilParked(t, input)
	for name, act := range map[string]func(*fixture){
		"signal":    func(f *fixture) { f.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"}) },
		"Temporal":  func(f *fixture) { f.env.CancelWorkflow() },
		"interrupt": func(f *fixture) { f.submit("r2", runs.OnBusyInterrupt) },
	} {
		next := runParked(t, parked, time.Hour, act)
		wantEqual(t, name+": is cancelled", next.Progress.Cancelled, true)
		wantEqual(t, name+": a run is queued", len(next.Queue) == 1, name == "interrupt")
		next.Queue = nil
		f := setup(t)
		result, finish := f.run(next)
		wantEqual(t, name+": outcome", result.Outcome, runs.OutcomeCancelled)
		wantEqual(t, name+": number of model calls", len(f.modelCalls), 0)
		wantEqual(t, name+": end of the run: record before it", finish.After, 11)
	}
	next := runParked(t, parked, time.Hour, func(f *fixture) {
		f.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r0"})
		f.submit("r2", runs.OnBusyEnqueue)
		f.update(runs.UpdateSteer, runs.SteerRequest{RunID: "r", Input: 7}, make(chan any, 1))
		f.update(runs.UpdateResume, runs.PauseRequest{}, make(chan any, 1))
	})
	wantEqual(t, "next execution: is cancelled", next.Progress.Cancelled, false)
	mustEqual(t, "next execution: number of queued runs", len(next.Queue), 1)
	wantEqual(t, "run in the queue of the next execution", next.Queue[0].Run.ID, "r2")
	wantEqual(t, "next execution: steering messages", next.Progress.Steered, []uint64{7})
}

// TestParkedRunContinuesAsNew: a parked run with a long history continues as new, still parked.
func TestParkedRunContinuesAsNew(t *testing.T) {
	t.Parallel()
	parked := runUntilParked(t, input)
	fixture := setup(t)
	fixture.env.SetContinueAsNewSuggested(true)
	fixture.env.ExecuteWorkflow(runs.TypeParked, parked)
	var again runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &again)
	if diff := cmp.Diff(parked, again); diff != "" {
		t.Errorf("next execution (-want +got):\n%s", diff)
	}
}

// submit submits a run.
func (f *fixture) submit(id string, onBusy runs.OnBusy) {
	in := queuedInput(id)
	f.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: id, Digest: in.Digest, OnBusy: onBusy, Offer: &in}, make(chan any, 1))
}
