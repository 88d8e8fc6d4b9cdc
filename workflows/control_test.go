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

	"github.com/perdure/perdure/workflows"
)

// waiting is a run that is offered while another one is active.
func waiting(id string) workflows.RunInput {
	in := input
	in.Run.ID, in.Digest, in.Token = id, "d-"+id, "token-"+id
	return in
}

// update sends an update and returns, once done is closed, what was answered or the refusal's type.
func (w *world) update(name string, arg any, done chan<- any) {
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

// continued runs the workflow to where it continues as new, and returns with what.
func (w *world) continued(in workflows.RunInput) workflows.RunInput {
	w.t.Helper()
	w.env.ExecuteWorkflow(workflows.TypeRun, in)
	var again *workflow.ContinueAsNewError
	if err := w.env.GetWorkflowError(); !errors.As(err, &again) {
		w.t.Fatalf("it ended with %v, not by continuing", err)
	}
	var next workflows.RunInput
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &next); err != nil {
		w.t.Fatal(err)
	}
	return next
}

// Runs that are to wait go on in the order in which they came, an interrupting one first.
func TestRunsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := make(chan any, 8)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for _, id := range []string{"r2", "r3", "r2"} {
			in := waiting(id)
			w.update(workflows.UpdateSubmit, workflows.Submit{RunID: id, Digest: in.Digest, OnBusy: workflows.OnBusyEnqueue, Offer: &in}, answers)
		}
		other, rejected, first := waiting("r3"), waiting("r4"), waiting("r5")
		w.update(workflows.UpdateSubmit, workflows.Submit{RunID: "r3", Digest: "other", OnBusy: workflows.OnBusyEnqueue, Offer: &other}, answers)
		w.update(workflows.UpdateSubmit, workflows.Submit{RunID: "r4", Digest: rejected.Digest, Offer: &rejected}, answers)
		w.update(workflows.UpdateSubmit, workflows.Submit{RunID: "r5", Digest: first.Digest, OnBusy: workflows.OnBusyInterrupt, Offer: &first}, answers)
		close(asked)
	}, time.Millisecond)
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) {
		<-asked
		return workflows.ModelAnswer{Outcome: workflows.OutcomeCancelled, Seq: 12}, nil
	}
	next := w.continued(input)
	close(answers)
	var got []any
	for a := range answers {
		got = append(got, a)
	}
	queued := workflows.Submitted{Queued: true}
	want := []any{queued, queued, queued, workflows.ErrorRunIDReused, workflows.ErrorBusy, workflows.Submitted{Queued: true, Interrupted: "r"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	expected := waiting("r5")
	expected.Queue = []workflows.RunInput{waiting("r2"), waiting("r3")}
	if diff := cmp.Diff(expected, next); diff != "" {
		t.Errorf("it goes on with (-want +got):\n%s", diff)
	}
	if w.finished[0].Outcome != workflows.OutcomeCancelled {
		t.Errorf("the interrupted run was finished with %+v", w.finished[0])
	}
}

// What continues as new is one payload, so only so many can wait.
func TestTooManyWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := make(chan any, 100)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for i := range 20 {
			in := waiting(fmt.Sprint(i, strings.Repeat("x", 300)))
			w.update(workflows.UpdateSubmit, workflows.Submit{RunID: in.Run.ID, Digest: in.Digest, OnBusy: workflows.OnBusyEnqueue, Offer: &in}, answers)
		}
		close(asked)
	}, time.Millisecond)
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { <-asked; return says(10), nil }
	w.continued(input)
	close(answers)
	taken, full := 0, 0
	for a := range answers {
		switch a {
		case workflows.Submitted{Queued: true}:
			taken++
		case workflows.ErrorQueueFull:
			full++
		}
	}
	if taken < 3 || full < 3 || taken+full != 20 {
		t.Errorf("%d taken, %d refused", taken, full)
	}
}

// Whatever clients do, the run can continue as new: who would make that too large is refused.
func TestWhatIsCarriedOnIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env.SetContinueAsNewSuggested(true)
	in := input
	in.Run.ID, in.Run.Thread = strings.Repeat(`"`, 1000), strings.Repeat("<", 1000)
	const offers, words = 20, 600
	answers := make(chan any, offers+words)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for i := range offers {
			next := waiting(fmt.Sprint(i, strings.Repeat("<", 900)))
			w.update(workflows.UpdateSubmit, workflows.Submit{RunID: next.Run.ID, Digest: next.Digest, OnBusy: workflows.OnBusyEnqueue, Offer: &next}, answers)
		}
		for i := range uint64(words) {
			w.update(workflows.UpdateSteer, workflows.Steer{RunID: in.Run.ID, Input: 1<<60 + i}, answers)
		}
		close(asked)
	}, time.Millisecond)
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { <-asked; return says(10), nil }
	next := w.continued(in)
	if next.Progress == nil || len(next.Queue) == 0 || len(next.Progress.Steered) < 100 || next.Run != in.Run {
		t.Errorf("it goes on with %d runs that wait and %+v", len(next.Queue), next.Progress)
	}
	refusals := map[any]int{}
	for range offers + words {
		refusals[<-answers]++
	}
	if refusals[workflows.ErrorQueueFull] != offers-len(next.Queue) || refusals[workflows.ErrorTooMuchSteering] != words-len(next.Progress.Steered) {
		t.Errorf("%v, of which %d wait and %d are said", refusals, len(next.Queue), len(next.Progress.Steered))
	}
}

// A cancel names its run: one that comes too late does not hit the next.
func TestCancelNamesItsRun(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]workflows.Outcome{"r": workflows.OutcomeCancelled, "r0": workflows.OutcomeSuccess} {
		w := newWorld(t)
		told := make(chan struct{})
		w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(workflows.SignalCancel, workflows.Cancel{RunID: run}); close(told) }, time.Millisecond)
		w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { <-told; return says(10), nil }
		if result, _ := w.run(input); result.Outcome != want {
			t.Errorf("cancel of %s: %+v, want %s", run, result, want)
		}
	}
}

// A paused run waits before its next step, without counting that as time of its own.
func TestPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := make(chan any, 4)
	asked := make(chan struct{})
	const pause = 5 * time.Minute
	var paused time.Time
	w.env.RegisterDelayedCallback(func() {
		w.update(workflows.UpdatePause, workflows.Pause{RunID: "r0"}, answers)
		w.update(workflows.UpdatePause, workflows.Pause{}, answers)
		// Counted from here: the first model call may begin before or after this.
		paused = w.env.Now()
		w.env.RegisterDelayedCallback(func() { w.update(workflows.UpdateResume, workflows.Pause{RunID: "r"}, answers) }, pause)
		close(asked)
	}, time.Millisecond)
	var times []time.Time
	w.model = func(in workflows.ModelCall) (workflows.ModelAnswer, error) {
		times = append(times, w.env.Now())
		if in.Turn == 1 {
			<-asked
			return says(10, "c"), nil
		}
		return says(20), nil
	}
	w.tool = func(workflows.ToolCall) (workflows.ToolAnswer, error) {
		return workflows.ToolAnswer{Outcome: workflows.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	result, _ := w.run(input)
	if len(times) != 2 || times[1].Sub(paused) < pause || result.Outcome != workflows.OutcomeSuccess {
		t.Errorf("%+v, paused at %v, model calls at %v", result, paused, times)
	}
	if a := <-answers; a != workflows.ErrorNotActive {
		t.Errorf("to pause another run is answered %v", a)
	}
}

// What people say to a run is told with its next model call, and there is one more if it would have
// ended without.
func TestSteering(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := make(chan any, 8)
	asked := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		for _, in := range []workflows.Steer{{RunID: "r", Input: 7}, {RunID: "r", Input: 8}, {RunID: "r", Input: 7}, {RunID: "r0", Input: 9}} {
			w.update(workflows.UpdateSteer, in, answers)
		}
		close(asked)
	}, time.Millisecond)
	w.model = func(in workflows.ModelCall) (workflows.ModelAnswer, error) {
		<-asked
		return says(uint64(10 * in.Turn)), nil
	}
	result, _ := w.run(input)
	if len(w.models) != 2 || w.models[0].Steered != nil || !cmp.Equal(w.models[1].Steered, []uint64{7, 8}) || result.Outcome != workflows.OutcomeSuccess {
		t.Errorf("%+v after the calls %+v", result, w.models)
	}
	close(answers)
	var got []any
	for a := range answers {
		got = append(got, a)
	}
	want := []any{workflows.Steered{}, workflows.Steered{}, workflows.Steered{Repeated: true}, workflows.ErrorNotActive}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// Between turns a run continues as new when its history is long, and knows all it knew.
func TestContinueAsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env.SetContinueAsNewSuggested(true)
	w.model = func(in workflows.ModelCall) (workflows.ModelAnswer, error) {
		a := says(uint64(10*in.Turn), "c0", "c1")
		n := int64(7)
		a.Usage = workflows.Usage{Provider: "p", Model: "m", Total: &n}
		return a, nil
	}
	w.tool = func(in workflows.ToolCall) (workflows.ToolAnswer, error) {
		return workflows.ToolAnswer{Outcome: workflows.OutcomeSuccess, Opened: in.After + 1, Seq: in.After + 2 + uint64(in.Lane)}, nil
	}
	next := w.continued(input)
	if len(w.models) != 1 || len(w.finished) != 0 {
		t.Fatalf("%d model calls, finished %d times", len(w.models), len(w.finished))
	}
	p := next.Progress
	if p == nil || p.Turn != 2 || p.Main != 11 || p.OpenStep != "tools" || p.Execution != w.models[0].Execution || *p.Usage[0].Total != 7 || !cmp.Equal(p.Lanes, []uint64{12, 13}) {
		t.Fatalf("it goes on with %+v", p)
	}

	again := newWorld(t)
	again.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { return says(20), nil }
	result, finish := again.run(next)
	call := again.models[0]
	if result.Outcome != workflows.OutcomeSuccess || call.ID != "2/model" || call.After != 11 || call.Closes != "tools" || call.Input != 0 || call.Execution != p.Execution || finish.Execution != p.Execution {
		t.Errorf("%+v; the second turn was called with %+v", result, call)
	}
}
