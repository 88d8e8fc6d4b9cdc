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

// waiting returns a run that is submitted while another one is active.
func waiting(id string) runs.Input {
	in := input
	in.Run.ID, in.Digest, in.Token = id, "d-"+id, "token-"+id
	return in
}

// update sends an update. It sends the update's result, or the type of the refusal, to done.
func (w *fixture) update(name string, arg any, done chan<- any) {
	refused := func(err error) {
		var app *temporal.ApplicationError
		if errors.As(err, &app) {
			done <- app.Type()
			return
		}
		done <- err
	}
	w.updates++
	w.env.UpdateWorkflow(name, fmt.Sprint(w.updates), &testsuite.TestUpdateCallback{
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

// continued runs the workflow until it continues as new, and returns the next input.
func (w *fixture) continued(in runs.Input) runs.Input {
	w.t.Helper()
	w.env.ExecuteWorkflow(runs.TypeRun, in)
	var again *workflow.ContinueAsNewError
	if err := w.env.GetWorkflowError(); !errors.As(err, &again) {
		w.t.Fatalf("got the end %v, want continue-as-new", err)
	}
	var next runs.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &next); err != nil {
		w.t.Fatal(err)
	}
	return next
}

// TestRunsWait: queued runs start in the order in which they arrived, an interrupting run first.
func TestRunsWait(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answers := make(chan any, 8)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for _, id := range []string{"r2", "r3", "r2"} {
			in := waiting(id)
			w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: id, Digest: in.Digest, OnBusy: runs.OnBusyEnqueue, Offer: &in}, answers)
		}
		other, rejected, first := waiting("r3"), waiting("r4"), waiting("r5")
		w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r3", Digest: "other", OnBusy: runs.OnBusyEnqueue, Offer: &other}, answers)
		w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r4", Digest: rejected.Digest, Offer: &rejected}, answers)
		w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r5", Digest: first.Digest, OnBusy: runs.OnBusyInterrupt, Offer: &first}, answers)
		close(asked)
	}, time.Millisecond)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		<-asked
		return runs.ModelAnswer{Outcome: runs.OutcomeCancelled, Seq: 12}, nil
	}
	next := w.continued(input)
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
	expected := waiting("r5")
	expected.Queue = []runs.Input{waiting("r2"), waiting("r3")}
	if diff := cmp.Diff(expected, next); diff != "" {
		t.Errorf("next run (-want +got):\n%s", diff)
	}
	if w.finished[0].Outcome != runs.OutcomeCancelled {
		t.Errorf("end of the interrupted run: got %+v", w.finished[0])
	}
}

// TestTooManyWait: the queue is bounded, because it continues as one payload.
func TestTooManyWait(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answers := make(chan any, 100)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for i := range 20 {
			in := waiting(fmt.Sprint(i, strings.Repeat("x", 300)))
			w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: in.Run.ID, Digest: in.Digest, OnBusy: runs.OnBusyEnqueue, Offer: &in}, answers)
		}
		close(asked)
	}, time.Millisecond)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-asked; return says(10), nil }
	w.continued(input)
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
	w := setup(t)
	w.env.SetContinueAsNewSuggested(true)
	in := input
	in.Run.ID, in.Run.Thread = strings.Repeat(`"`, 1000), strings.Repeat("<", 1000)
	const offers, words = 20, 600
	answers := make(chan any, offers+words)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for i := range offers {
			next := waiting(fmt.Sprint(i, strings.Repeat("<", 900)))
			w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: next.Run.ID, Digest: next.Digest, OnBusy: runs.OnBusyEnqueue, Offer: &next}, answers)
		}
		for i := range uint64(words) {
			w.update(runs.UpdateSteer, runs.SteerRequest{RunID: in.Run.ID, Input: 1<<60 + i}, answers)
		}
		close(asked)
	}, time.Millisecond)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-asked; return says(10), nil }
	next := w.continued(in)
	if next.Progress == nil || len(next.Queue) == 0 || len(next.Progress.Steered) < 100 || next.Run != in.Run {
		t.Errorf("next execution: got %d queued runs and %+v", len(next.Queue), next.Progress)
	}
	refusals := map[any]int{}
	for range offers + words {
		refusals[<-answers]++
	}
	if refusals[runs.ErrorQueueFull] != offers-len(next.Queue) || refusals[runs.ErrorTooMuchSteering] != words-len(next.Progress.Steered) {
		t.Errorf("got the answers %v with %d queued runs and %d steering inputs", refusals, len(next.Queue), len(next.Progress.Steered))
	}
}

// TestCancelNamesItsRun: a cancel names its run, so that a late one does not cancel the next run.
func TestCancelNamesItsRun(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]runs.Outcome{"r": runs.OutcomeCancelled, "r0": runs.OutcomeSuccess} {
		w := setup(t)
		sent := make(chan struct{})
		w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: run}); close(sent) }, time.Millisecond)
		w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { <-sent; return says(10), nil }
		if result, _ := w.run(input); result.Outcome != want {
			t.Errorf("cancel of %s: %+v, want %s", run, result, want)
		}
	}
}

// TestPause: a paused run waits before its next step. The pause does not count against its
// deadline.
func TestPause(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answers := make(chan any, 4)
	asked := make(chan struct{})
	const pause = 5 * time.Minute
	var paused time.Time
	w.env.RegisterDelayedCallback(func() {
		w.update(runs.UpdatePause, runs.PauseRequest{RunID: "r0"}, answers)
		w.update(runs.UpdatePause, runs.PauseRequest{}, answers)
		// Measured from here: the first model call may begin before or after this.
		paused = w.env.Now()
		w.env.RegisterDelayedCallback(func() { w.update(runs.UpdateResume, runs.PauseRequest{RunID: "r"}, answers) }, pause)
		close(asked)
	}, time.Millisecond)
	var times []time.Time
	w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		times = append(times, w.env.Now())
		if in.Turn == 1 {
			<-asked
			return says(10, "c"), nil
		}
		return says(20), nil
	}
	w.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	result, _ := w.run(input)
	if len(times) != 2 || times[1].Sub(paused) < pause || result.Outcome != runs.OutcomeSuccess {
		t.Errorf("got %+v, paused at %v, model calls at %v", result, paused, times)
	}
	if a := <-answers; a != runs.ErrorNotActive {
		t.Errorf("pause of another run: got %v, want %v", a, runs.ErrorNotActive)
	}
}

// TestSteering: a steering input is part of the next model call. If the run would have ended, it
// makes one more call.
func TestSteering(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answers := make(chan any, 8)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for _, in := range []runs.SteerRequest{{RunID: "r", Input: 7}, {RunID: "r", Input: 8}, {RunID: "r", Input: 7}, {RunID: "r0", Input: 9}} {
			w.update(runs.UpdateSteer, in, answers)
		}
		close(asked)
	}, time.Millisecond)
	w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		<-asked
		return says(uint64(10 * in.Turn)), nil
	}
	result, _ := w.run(input)
	if len(w.models) != 2 || w.models[0].Steered != nil || !cmp.Equal(w.models[1].Steered, []uint64{7, 8}) || result.Outcome != runs.OutcomeSuccess {
		t.Errorf("got %+v after the calls %+v", result, w.models)
	}
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

// TestContinueAsNew: between turns a run with a long history continues as new and keeps its
// progress.
func TestContinueAsNew(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.env.SetContinueAsNewSuggested(true)
	w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a := says(uint64(10*in.Turn), "c0", "c1")
		n := int64(7)
		a.Usage = runs.Usage{Provider: "p", Model: "m", Total: &n}
		return a, nil
	}
	w.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: in.After + 2 + uint64(in.Lane)}, nil
	}
	next := w.continued(input)
	if len(w.models) != 1 || len(w.finished) != 0 {
		t.Fatalf("got %d model calls and %d ends, want 1 and 0", len(w.models), len(w.finished))
	}
	p := next.Progress
	if p == nil || p.Turn != 2 || p.Main != 11 || p.OpenStep != "tools" || p.Execution != w.models[0].Execution || *p.Usage[0].Total != 7 || !cmp.Equal(p.Lanes, []uint64{12, 13}) {
		t.Fatalf("progress of the next execution: got %+v", p)
	}

	again := setup(t)
	again.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(20), nil }
	result, finish := again.run(next)
	call := again.models[0]
	if result.Outcome != runs.OutcomeSuccess || call.ID != "2/model" || call.After != 11 || call.Closes != "tools" || call.Input != 0 || call.Execution != p.Execution || finish.Execution != p.Execution {
		t.Errorf("got %+v; second model call: %+v", result, call)
	}
}
