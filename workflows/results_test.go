package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/runs"
)

// setupClientCalls returns a fixture whose run ends with two client tool calls, and the calls in
// more.
func setupClientCalls(t *testing.T, more ...string) *fixture {
	t.Helper()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(10, append([]string{"c0", "c1"}, more...)...)
		a.InterruptCount = len(a.Calls)
		for i := range a.Calls {
			a.Calls[i].Client = true
		}
		return a, nil
	}
	return fixture
}

// resultDecision returns the decision with the result of a client tool call.
func resultDecision(call string, proposal uint64) runs.Decision {
	return runs.Decision{CallID: call, Kind: runs.DecisionToolResult, Digest: "r-" + call, Proposal: proposal}
}

// inputWithPolicy returns an input with a policy for missing results.
func inputWithPolicy(onMissing runs.OpenPolicy) runs.Input {
	in := input
	in.OnMissingResult = onMissing
	return in
}

// TestThreadWaitsForToolResults: a thread waits for results of client tool calls. Results may
// arrive one by one. After the last one the thread continues without an input.
func TestThreadWaitsForToolResults(t *testing.T) {
	t.Parallel()
	fixture := setupClientCalls(t)
	answers := make(chan any, 2)
	for i, call := range []string{"c1", "c0"} {
		fixture.env.RegisterDelayedCallback(func() {
			fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{resultDecision(call, 70)}}, answers)
		}, time.Duration(i+1)*time.Minute)
	}
	next := fixture.runUntilContinued(inputWithPolicy(runs.OpenAbandon))
	wantEqual(t, "end of the run: outcome", fixture.finished[0].Outcome, runs.OutcomeSuccess)
	wantEqual(t, "end of the run: number of interrupts", len(fixture.finished[0].Interrupts.Items), 2)
	wantEqual(t, "next run: continued run", next.Continues, "r")
	if next.Resume == nil {
		t.Fatal("next run: Resume = nil, want a value")
	}
	wantEqual(t, "digest of the first decision of the next run", next.Resume.Items[0].Decision.Digest, "r-c0")
	wantEqual(t, "next run: policy for missing results", next.OnMissingResult, runs.OpenAbandon)
}

// TestInputWithToolResults: an input may bring results. A result that equals an accepted one is
// recorded once, with the input. If it differs, the accepted one wins.
func TestInputWithToolResults(t *testing.T) {
	t.Parallel()
	fixture := setupClientCalls(t, "c2")
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{resultDecision("c0", 70), resultDecision("c1", 71)}}, make(chan any, 1))
		offered := queuedInput("r2")
		other := resultDecision("c1", 0)
		other.Digest = "another"
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: []runs.Decision{resultDecision("c0", 0), other, resultDecision("c2", 0)}}, make(chan any, 1))
	}, time.Minute)
	next := fixture.runUntilContinued(inputWithPolicy(runs.OpenReject))
	wantEqual(t, "next run: run ID", next.Run.ID, "r2")
	mustEqual(t, fmt.Sprintf("next run %s: proposal of the first decision", next.Run.ID), next.Resume.Items[0].Decision.Proposal, 0)
	mustEqual(t, fmt.Sprintf("next run %s: proposal of the second decision", next.Run.ID), next.Resume.Items[1].Decision.Proposal, 71)
	wantEqual(t, fmt.Sprintf("next run %s: digest of the second decision", next.Run.ID), next.Resume.Items[1].Decision.Digest, "r-c1")
}

// TestPoliciesForOpenInterrupts: the agent's policy decides about an input that leaves
// interrupts open. The input's `onBusy` overrides it.
func TestPoliciesForOpenInterrupts(t *testing.T) {
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
		fixture := setupClientCalls(t)
		if x.questions {
			fixture = setupInterrupted(t)
		}
		answers := make(chan any, 1)
		fixture.env.RegisterDelayedCallback(func() {
			offered := queuedInput("r2")
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, OnBusy: x.onBusy, Offer: &offered}, answers)
		}, time.Second)
		fixture.env.RegisterDelayedCallback(func() { // to end the run
			fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{resultDecision("c0", 70), resultDecision("c1", 71), approvalOf("ask"), clientResult}}, make(chan any, 1))
		}, time.Minute)
		in := inputWithPolicy(x.onMissing)
		in.OnNewInput = x.onNewInput
		next := fixture.runUntilContinued(in)
		got := <-answers
		if (got == runs.SubmitResult{Queued: true}) {
			got = "waits"
			if next.Run.ID == "r2" {
				got = "resumes"
			}
		}
		waits := slices.ContainsFunc(next.Queue, func(q runs.Input) bool { return q.Run.ID == "r2" })
		wantEqual[any](t, fmt.Sprintf("%+v: answer", x), got, x.want)
		wantEqual(t, fmt.Sprintf("%+v: the run is queued", x), waits, x.want == "waits")
	}
}

// TestInputThatResolvesAllCalls: an input that resolves or abandons all open calls starts
// like any other input.
func TestInputThatResolvesAllCalls(t *testing.T) {
	t.Parallel()
	for _, decisions := range [][]runs.Decision{nil, {resultDecision("c0", 0)}, {resultDecision("c0", 0), resultDecision("c1", 0)}} {
		fixture := setupClientCalls(t)
		answers := make(chan any, 1)
		fixture.env.RegisterDelayedCallback(func() {
			offered := queuedInput("r2")
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: decisions}, answers)
		}, time.Second)
		result, _ := fixture.run(inputWithPolicy(runs.OpenAbandon))
		got := <-answers
		wantEqual[any](t, fmt.Sprintf("with %d results: answer", len(decisions)), got, runs.SubmitResult{Closing: true})
		wantEqual(t, fmt.Sprintf("with %d results: outcome", len(decisions)), result.Outcome, runs.OutcomeSuccess)
	}
}

// TestQueuedRunAbandonsResults: a queued run continues without the results. A run without a policy
// for missing results does too.
func TestQueuedRunAbandonsResults(t *testing.T) {
	t.Parallel()
	in := inputWithPolicy(runs.OpenAbandon)
	in.Queue = []runs.Input{queuedInput("r2")}
	fixture := setupClientCalls(t)
	fixture.finishLate()
	next := fixture.runUntilContinued(in)
	wantEqual(t, "next run: run ID", next.Run.ID, "r2")
	if next.Resume != nil {
		t.Errorf("next run: Resume = %+v, want nil", next.Resume)
	}
	result, _ := setupClientCalls(t).run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
}
