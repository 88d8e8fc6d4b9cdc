package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/runs"
)

// setupPending returns a fixture whose run ends with two client tool calls, and the calls in more.
func setupPending(t *testing.T, more ...string) *fixture {
	t.Helper()
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := says(10, append([]string{"c0", "c1"}, more...)...)
		a.WaitCount = len(a.Calls)
		for i := range a.Calls {
			a.Calls[i].Client = true
		}
		return a, nil
	}
	return w
}

func cameTo(call string, proposal uint64) runs.Decision {
	return runs.Decision{CallID: call, Kind: runs.DecisionToolResult, Digest: "r-" + call, Input: proposal}
}

func waitingFor(onMissing runs.OpenPolicy) runs.Input {
	in := input
	in.OnMissingResult = onMissing
	return in
}

// TestAThreadWaitsForResults: a thread waits for results of client tool calls. Results may arrive
// one by one. After the last one the thread continues without an input.
func TestAThreadWaitsForResults(t *testing.T) {
	t.Parallel()
	w := setupPending(t)
	answers := make(chan any, 2)
	for i, call := range []string{"c1", "c0"} {
		w.env.RegisterDelayedCallback(func() {
			w.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{cameTo(call, 70)}}, answers)
		}, time.Duration(i+1)*time.Minute)
	}
	next := w.continued(waitingFor(runs.OpenAbandon))
	if end := w.finished[0]; end.Outcome != runs.OutcomeSuccess || len(end.Interrupts.Items) != 2 {
		t.Errorf("end of the run: got %+v", end)
	}
	if next.Continues != "r" || next.Resume == nil || next.Resume.Items[0].Decision.Digest != "r-c0" || next.OnMissingResult != runs.OpenAbandon {
		t.Errorf("next run: got %+v", next)
	}
}

// TestAnInputBringsResults: an input may bring results. A result that equals an accepted one is
// recorded once, with the input. If it differs, the accepted one wins.
func TestAnInputBringsResults(t *testing.T) {
	t.Parallel()
	w := setupPending(t, "c2")
	w.env.RegisterDelayedCallback(func() {
		w.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{cameTo("c0", 70), cameTo("c1", 71)}}, make(chan any, 1))
		offered := waiting("r2")
		other := cameTo("c1", 0)
		other.Digest = "another"
		w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: []runs.Decision{cameTo("c0", 0), other, cameTo("c2", 0)}}, make(chan any, 1))
	}, time.Minute)
	next := w.continued(waitingFor(runs.OpenReject))
	if d := next.Resume; next.Run.ID != "r2" || d.Items[0].Decision.Input != 0 || d.Items[1].Decision.Input != 71 || d.Items[1].Decision.Digest != "r-c1" {
		t.Errorf("next run %s: got the decisions %+v and %+v", next.Run.ID, d.Items[0].Decision, d.Items[1].Decision)
	}
}

// TestInputsThatLeaveSomethingOpen: the agent's policy decides about an input that leaves
// interrupts open. The input's `onBusy` overrides it.
func TestInputsThatLeaveSomethingOpen(t *testing.T) {
	t.Parallel()
	const abandon, reject, queue = runs.OpenAbandon, runs.OpenReject, runs.OpenQueue
	for _, x := range []struct {
		onMissing, onNewInput runs.OpenPolicy
		questions             bool
		onBusy                runs.OnBusy
		want                  any
	}{
		{onMissing: reject, want: runs.ErrorMissingResults},
		{onMissing: reject, onBusy: runs.OnBusyInterrupt, want: runs.ErrorMissingResults},
		{onMissing: reject, onBusy: runs.OnBusyEnqueue, want: "waits"},
		{onMissing: queue, want: "waits"},
		{onMissing: queue, onBusy: runs.OnBusyReject, want: runs.ErrorMissingResults},
		{onMissing: abandon, questions: true, want: runs.ErrorInterrupted},
		{onMissing: queue, onNewInput: reject, questions: true, want: runs.ErrorInterrupted},
		{onMissing: reject, onNewInput: queue, questions: true, want: "waits"},
		{onMissing: abandon, onNewInput: queue, questions: true, onBusy: runs.OnBusyReject, want: runs.ErrorInterrupted},
	} {
		w := setupPending(t)
		if x.questions {
			w = setupInterrupted(t)
		}
		answers := make(chan any, 1)
		w.env.RegisterDelayedCallback(func() {
			offered := waiting("r2")
			w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, OnBusy: x.onBusy, Offer: &offered}, answers)
		}, time.Second)
		w.env.RegisterDelayedCallback(func() { // to end the run
			w.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{cameTo("c0", 70), cameTo("c1", 71), approves("ask"), clientResult}}, make(chan any, 1))
		}, time.Minute)
		in := waitingFor(x.onMissing)
		in.OnNewInput = x.onNewInput
		next := w.continued(in)
		got := <-answers
		if (got == runs.SubmitResult{Queued: true}) {
			got = "waits"
			if next.Run.ID == "r2" {
				got = "resumes"
			}
		}
		waits := slices.ContainsFunc(next.Queue, func(q runs.Input) bool { return q.Run.ID == "r2" })
		if got != x.want || waits != (x.want == "waits") {
			t.Errorf("%+v: got %v, with %d runs queued after %s", x, got, len(next.Queue), next.Run.ID)
		}
	}
}

// TestAnInputThatNeedsNothingOfTheThread: an input that resolves or abandons all open calls starts
// like any other input.
func TestAnInputThatNeedsNothingOfTheThread(t *testing.T) {
	t.Parallel()
	for _, decisions := range [][]runs.Decision{nil, {cameTo("c0", 0)}, {cameTo("c0", 0), cameTo("c1", 0)}} {
		w := setupPending(t)
		answers := make(chan any, 1)
		w.env.RegisterDelayedCallback(func() {
			offered := waiting("r2")
			w.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: decisions}, answers)
		}, time.Second)
		result, _ := w.run(waitingFor(runs.OpenAbandon))
		if got := <-answers; got != (runs.SubmitResult{Closing: true}) || result.Outcome != runs.OutcomeSuccess {
			t.Errorf("with %d results: got %+v and the run's result %+v", len(decisions), got, result)
		}
	}
}

// TestResultsAreNotWaitedFor: a queued run continues without the results. A run without a policy
// for missing results does too.
func TestResultsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	in := waitingFor(runs.OpenAbandon)
	in.Queue = []runs.Input{waiting("r2")}
	if next := setupPending(t).continued(in); next.Run.ID != "r2" || next.Resume != nil {
		t.Errorf("next run: got %+v", next)
	}
	if result, _ := setupPending(t).run(input); result.Outcome != runs.OutcomeSuccess {
		t.Errorf("got %+v", result)
	}
}
