package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/runs"
)

// setupPending returns a fixture whose run ends with two calls of the client's, and more, and nothing
// else.
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

// A thread waits for results of its client's. Those that come one by one add up, and it goes on by
// itself.
func TestAThreadWaitsForResults(t *testing.T) {
	t.Parallel()
	w := setupPending(t)
	answers := make(chan any, 2)
	for i, call := range []string{"c1", "c0"} {
		w.env.RegisterDelayedCallback(func() {
			w.update(runs.UpdateDecide, runs.Decide{Decisions: []runs.Decision{cameTo(call, 70)}}, answers)
		}, time.Duration(i+1)*time.Minute)
	}
	next := w.continued(waitingFor(runs.OpenAbandon))
	if end := w.finished[0]; end.Outcome != runs.OutcomeSuccess || len(end.Interrupts.Calls) != 2 {
		t.Errorf("the run is finished with %+v", end)
	}
	if next.Continues != "r" || next.Resume == nil || next.Resume.Calls[0].Decision.Digest != "r-c0" || next.OnMissingResult != runs.OpenAbandon {
		t.Errorf("it goes on with %+v", next)
	}
}

// The next input brings results of its own: those that it brings, and were taken before, are made
// nothing of; those that only were taken are.
func TestAnInputBringsResults(t *testing.T) {
	t.Parallel()
	w := setupPending(t, "c2")
	w.env.RegisterDelayedCallback(func() {
		w.update(runs.UpdateDecide, runs.Decide{Decisions: []runs.Decision{cameTo("c0", 70), cameTo("c1", 71)}}, make(chan any, 1))
		offered := waiting("r2")
		other := cameTo("c1", 0)
		other.Digest = "another"
		w.update(runs.UpdateSubmit, runs.Submit{RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: []runs.Decision{cameTo("c0", 0), other, cameTo("c2", 0)}}, make(chan any, 1))
	}, time.Minute)
	next := w.continued(waitingFor(runs.OpenReject))
	if d := next.Resume; next.Run.ID != "r2" || d.Calls[0].Decision.Input != 0 || d.Calls[1].Decision.Input != 71 || d.Calls[1].Decision.Digest != "r-c1" {
		t.Errorf("%s goes on with %+v and %+v", next.Run.ID, d.Calls[0].Decision, d.Calls[1].Decision)
	}
}

// The agent says what becomes of an input that leaves something open, and who asks for a run may
// insist.
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
			w.update(runs.UpdateSubmit, runs.Submit{RunID: "r2", Digest: offered.Digest, OnBusy: x.onBusy, Offer: &offered}, answers)
		}, time.Second)
		w.env.RegisterDelayedCallback(func() { // so that it ends
			w.update(runs.UpdateDecide, runs.Decide{Decisions: []runs.Decision{cameTo("c0", 70), cameTo("c1", 71), approves("ask"), clientResult}}, make(chan any, 1))
		}, time.Minute)
		in := waitingFor(x.onMissing)
		in.OnNewInput = x.onNewInput
		next := w.continued(in)
		got := <-answers
		if (got == runs.Submitted{Queued: true}) {
			got = "waits"
			if next.Run.ID == "r2" {
				got = "resumes"
			}
		}
		waits := slices.ContainsFunc(next.Queue, func(q runs.Input) bool { return q.Run.ID == "r2" })
		if got != x.want || waits != (x.want == "waits") {
			t.Errorf("%+v: the offer %v, with %d behind %s", x, got, len(next.Queue), next.Run.ID)
		}
	}
}

// An input that answers, or gives up, everything by itself is started like any other.
func TestAnInputThatNeedsNothingOfTheThread(t *testing.T) {
	t.Parallel()
	for _, decisions := range [][]runs.Decision{nil, {cameTo("c0", 0)}, {cameTo("c0", 0), cameTo("c1", 0)}} {
		w := setupPending(t)
		answers := make(chan any, 1)
		w.env.RegisterDelayedCallback(func() {
			offered := waiting("r2")
			w.update(runs.UpdateSubmit, runs.Submit{RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: decisions}, answers)
		}, time.Second)
		result, _ := w.run(waitingFor(runs.OpenAbandon))
		if got := <-answers; got != (runs.Submitted{Closing: true}) || result.Outcome != runs.OutcomeSuccess {
			t.Errorf("with %d results: %+v, the run's result is %+v", len(decisions), got, result)
		}
	}
}

// A run that waits for its turn goes on without the results; so do runs of agents from before.
func TestResultsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	in := waitingFor(runs.OpenAbandon)
	in.Queue = []runs.Input{waiting("r2")}
	if next := setupPending(t).continued(in); next.Run.ID != "r2" || next.Resume != nil {
		t.Errorf("it goes on with %+v", next)
	}
	if result, _ := setupPending(t).run(input); result.Outcome != runs.OutcomeSuccess {
		t.Errorf("%+v", result)
	}
}
