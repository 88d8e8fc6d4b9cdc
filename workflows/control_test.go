package workflows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// queuedInput returns a run that is submitted while another one is active.
func queuedInput(id string) runs.Input {
	in := input
	in.Run.ID, in.Digest, in.Token = id, "d-"+id, "token-"+id
	return in
}

// update sends an update. It sends the update's result, or the type of the refusal, to done.
func (f *fixture) update(name string, arg any, done chan<- any) {
	refused := func(err error) {
		var app *temporal.ApplicationError
		if errors.As(err, &app) {
			done <- app.Type()
			return
		}
		done <- err
	}
	f.updates++
	f.env.UpdateWorkflow(name, fmt.Sprint(f.updates), &testsuite.TestUpdateCallback{
		OnAccept: func() {}, OnReject: refused,
		OnComplete: func(result any, err error) {
			if err != nil {
				refused(err)
				return
			}
			done <- result
		},
	}, arg)
}

// runUntilContinued runs the workflow until it continues as new, and returns the next input.
func (f *fixture) runUntilContinued(in runs.Input) runs.Input {
	f.t.Helper()
	f.env.ExecuteWorkflow(runs.TypeRun, in)
	var again *workflow.ContinueAsNewError
	if err := f.env.GetWorkflowError(); !errors.As(err, &again) {
		f.t.Fatalf("got the end %v, want continue-as-new", err)
	}
	var next runs.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &next); err != nil {
		f.t.Fatal(err)
	}
	return next
}

// finishLate makes the run end more than a second after it began, in the time of the environment:
// the first attempt to record the end fails, and so does the second, after which a pause follows.
func (f *fixture) finishLate() {
	failures := 2
	f.finish = func(bool) error {
		if failures--; failures >= 0 {
			return errors.New("the log is unavailable")
		}
		return nil
	}
}

// TestQueuedRunsStartInOrder: queued runs start in the order in which they arrived, an interrupting
// run first.
func TestQueuedRunsStartInOrder(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	answers := make(chan any, 8)
	modelCalled := make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() {
		for _, id := range []string{"r2", "r3", "r2"} {
			in := queuedInput(id)
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: id, Digest: in.Digest, OnBusy: runs.OnBusyEnqueue, Offer: &in}, answers)
		}
		other, rejected, first := queuedInput("r3"), queuedInput("r4"), queuedInput("r5")
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r3", Digest: "other", OnBusy: runs.OnBusyEnqueue, Offer: &other}, answers)
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r4", Digest: rejected.Digest, Offer: &rejected}, answers)
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r5", Digest: first.Digest, OnBusy: runs.OnBusyInterrupt, Offer: &first}, answers)
		close(modelCalled)
	}, time.Millisecond)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		<-modelCalled
		return runs.ModelAnswer{Outcome: runs.OutcomeCancelled, Seq: 12}, nil
	}
	fixture.finishLate()
	next := fixture.runUntilContinued(input)
	close(answers)
	var got []any
	for a := range answers {
		got = append(got, a)
	}
	queued := runs.SubmitResult{Queued: true}
	want := []any{queued, queued, queued, runs.ErrorRunIDReused, runs.ErrorBusy, runs.SubmitResult{Queued: true, Interrupted: "r"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	expected := queuedInput("r5")
	expected.Queue = []runs.Input{queuedInput("r2"), queuedInput("r3")}
	if diff := cmp.Diff(expected, next); diff != "" {
		t.Errorf("next run (-want +got):\n%s", diff)
	}
	wantEqual(t, "end of the interrupted run: outcome", fixture.finished[0].Outcome, runs.OutcomeCancelled)
}

// TestQueueIsBounded: the queue is bounded, because it continues as one payload.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	answers := make(chan any, 100)
	modelCalled := make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() {
		for i := range 20 {
			in := queuedInput(fmt.Sprint(i, strings.Repeat("x", 300)))
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: in.Run.ID, Digest: in.Digest, OnBusy: runs.OnBusyEnqueue, Offer: &in}, answers)
		}
		close(modelCalled)
	}, time.Millisecond)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-modelCalled; return modelAnswer(10), nil }
	fixture.finishLate()
	fixture.runUntilContinued(input)
	close(answers)
	taken, full := 0, 0
	for a := range answers {
		switch a {
		case runs.SubmitResult{Queued: true}:
			taken++
		case runs.ErrorQueueFull:
			full++
		}
	}
	if taken < 3 || full < 3 || taken+full != 20 {
		t.Errorf("got %d queued and %d refused, want at least 3 of each and 20 together", taken, full)
	}
}

// TestContinuedPayloadIsBounded: whatever clients submit, the run can continue as new. A submission
// that would make its payload too large is refused.
func TestContinuedPayloadIsBounded(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.env.SetContinueAsNewSuggested(true)
	in := input
	in.Run.ID, in.Run.Thread = strings.Repeat(`"`, 1000), strings.Repeat("<", 1000)
	const offers, words = 20, 600
	answers := make(chan any, offers+words)
	modelCalled := make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() {
		for i := range offers {
			next := queuedInput(fmt.Sprint(i, strings.Repeat("<", 900)))
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: next.Run.ID, Digest: next.Digest, OnBusy: runs.OnBusyEnqueue, Offer: &next}, answers)
		}
		for i := range uint64(words) {
			fixture.update(runs.UpdateSteer, runs.SteerRequest{RunID: in.Run.ID, Input: 1<<60 + i}, answers)
		}
		close(modelCalled)
	}, time.Millisecond)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-modelCalled; return modelAnswer(10), nil }
	next := fixture.runUntilContinued(in)
	if next.Progress == nil {
		t.Fatal("progress of the next execution = nil, want a value")
	}
	if len(next.Queue) == 0 {
		t.Errorf("number of queued runs of the next execution = %v, want at least 1", len(next.Queue))
	}
	if len(next.Progress.Steered) < 100 {
		t.Errorf("number of steering messages of the next execution = %v, want at least %v", len(next.Progress.Steered), 100)
	}
	wantEqual(t, "run of the next execution", next.Run, in.Run)
	refusals := map[any]int{}
	for range offers + words {
		refusals[<-answers]++
	}
	mustEqual(t, "number of refusals of a full queue", refusals[runs.ErrorQueueFull], offers-len(next.Queue))
	wantEqual(t, "number of refusals of steering messages", refusals[runs.ErrorTooMuchSteering], words-len(next.Progress.Steered))
}

// TestCancelAppliesToNamedRun: a cancel names its run, so that a late one does not cancel the next
// run.
func TestCancelAppliesToNamedRun(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]runs.Outcome{"r": runs.OutcomeCancelled, "r0": runs.OutcomeSuccess} {
		fixture := setup(t)
		sent := make(chan struct{})
		fixture.env.RegisterDelayedCallback(func() { fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: run}); close(sent) }, time.Millisecond)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-sent; return modelAnswer(10), nil }
		if result, _ := fixture.run(input); result.Outcome != want {
			t.Errorf("cancel of %s: %+v, want %s", run, result, want)
		}
	}
}

// TestPausedRunWaitsBeforeNextStep: a paused run waits before its next step. The pause does not
// count against its deadline.
func TestPausedRunWaitsBeforeNextStep(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	answers := make(chan any, 4)
	modelCalled := make(chan struct{})
	const pause = 5 * time.Minute
	var paused time.Time
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdatePause, runs.PauseRequest{RunID: "r0"}, answers)
		fixture.update(runs.UpdatePause, runs.PauseRequest{}, answers)
		// Measured from here: the first model call may begin before or after this.
		paused = fixture.env.Now()
		fixture.env.RegisterDelayedCallback(func() { fixture.update(runs.UpdateResume, runs.PauseRequest{RunID: "r"}, answers) }, pause)
		close(modelCalled)
	}, time.Millisecond)
	var times []time.Time
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		times = append(times, fixture.env.Now())
		if in.Turn == 1 {
			<-modelCalled
			return modelAnswer(10, "c"), nil
		}
		return modelAnswer(20), nil
	}
	fixture.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	result, _ := fixture.run(input)
	mustEqual(t, "number of model calls", len(times), 2)
	if times[1].Sub(paused) < pause {
		t.Errorf("time from the pause to the second model call = %v, want at least %v", times[1].Sub(paused), pause)
	}
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if a := <-answers; a != runs.ErrorNotActive {
		t.Errorf("pause of another run: got %v, want %v", a, runs.ErrorNotActive)
	}
}

// TestSteeringMessageReachesNextModelCall: a steering input is part of the next model call. If the
// run would have ended, it makes one more call.
func TestSteeringMessageReachesNextModelCall(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	answers := make(chan any, 8)
	modelCalled := make(chan struct{})
	fixture.env.RegisterDelayedCallback(func() {
		for _, in := range []runs.SteerRequest{{RunID: "r", Input: 7}, {RunID: "r", Input: 8}, {RunID: "r", Input: 7}, {RunID: "r0", Input: 9}} {
			fixture.update(runs.UpdateSteer, in, answers)
		}
		close(modelCalled)
	}, time.Millisecond)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		<-modelCalled
		return modelAnswer(uint64(10 * in.Turn)), nil
	}
	result, _ := fixture.run(input)
	mustEqual(t, "number of model calls", len(fixture.modelCalls), 2)
	wantEqual(t, "steering messages of the first model call", fixture.modelCalls[0].Steered, nil)
	wantEqual(t, "steering messages of the second model call", fixture.modelCalls[1].Steered, []uint64{7, 8})
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	close(answers)
	var got []any
	for a := range answers {
		got = append(got, a)
	}
	want := []any{runs.SteerResult{}, runs.SteerResult{}, runs.SteerResult{Repeated: true}, runs.ErrorNotActive}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// TestLongHistoryContinuesAsNew: between turns a run with a long history continues as new and keeps
// its progress.
func TestLongHistoryContinuesAsNew(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.env.SetContinueAsNewSuggested(true)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(uint64(10*in.Turn), "c0", "c1")
		n := int64(7)
		a.Usage = runs.Usage{Provider: "p", Model: "m", Total: &n}
		return a, nil
	}
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: in.After + 2 + uint64(in.Lane)}, nil
	}
	next := fixture.runUntilContinued(input)
	if len(fixture.modelCalls) != 1 || len(fixture.finished) != 0 {
		t.Fatalf("got %d model calls and %d ends, want 1 and 0", len(fixture.modelCalls), len(fixture.finished))
	}
	p := next.Progress
	if p == nil {
		t.Fatal("progress of the next execution = nil, want a value")
	}
	mustEqual(t, "progress of the next execution: turn", p.Turn, 2)
	mustEqual(t, "progress of the next execution: last record of the main lane", p.Main, 11)
	mustEqual(t, "progress of the next execution: open step", p.OpenStep, "tools")
	mustEqual(t, "progress of the next execution: execution", p.Execution, fixture.modelCalls[0].Execution)
	mustEqual(t, "tokens of the next execution", *p.Usage[0].Total, 7)
	mustEqual(t, "progress of the next execution: lanes", p.Lanes, []uint64{12, 13})

	nextFixture := setup(t)
	nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(20), nil }
	result, finish := nextFixture.run(next)
	call := nextFixture.modelCalls[0]
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "ID of the first model call", call.ID, "2/model")
	wantEqual(t, "record before the first model call", call.After, 11)
	wantEqual(t, "step that the first model call closes", call.Closes, "tools")
	wantEqual(t, "input of the first model call", call.Input, 0)
	wantEqual(t, "execution of the first model call", call.Execution, p.Execution)
	wantEqual(t, "end of the run: execution", finish.Execution, p.Execution)
}
