package workflows_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// answerWithInterrupts returns an answer with three calls. The first runs, the second waits for an
// approval, and the third for the client.
func answerWithInterrupts(seq uint64) runs.ModelAnswer {
	a := modelAnswer(seq, "now", "ask", "client")
	a.Calls[1].Approval = &runs.Approval{Rule: 1, ArgsDigest: "args", Expires: 24 * time.Hour}
	a.Calls[2].Client = true
	a.InterruptCount = 2
	return a
}

// approvalOf returns the approval of a call.
func approvalOf(call string) runs.Decision {
	return runs.Decision{CallID: call, Kind: runs.DecisionApprove, Digest: "d-" + call, Proposal: 70}
}

// setupInterrupted returns a fixture whose run ends with interrupts.
func setupInterrupted(t *testing.T) *fixture {
	t.Helper()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return answerWithInterrupts(10), nil }
	fixture.tool = func(runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 12}, nil
	}
	return fixture
}

// TestInputWithDecisions: an input may bring decisions. The thread then continues with that
// input's run.
func TestInputWithDecisions(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	answers := make(chan any, 4)
	offered := queuedInput("r2")
	offered.Token = "token-r2"
	fixture.env.RegisterDelayedCallback(func() {
		other := queuedInput("r3")
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r3", Digest: other.Digest, Offer: &other}, answers)
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r3", Digest: other.Digest, Offer: &other, OnBusy: runs.OnBusyInterrupt}, answers)
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r3", Digest: other.Digest, Offer: &other, OnBusy: runs.OnBusyEnqueue}, answers)
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, Offer: &offered, Decisions: []runs.Decision{approvalOf("ask")}}, answers)
	}, time.Minute)
	next := fixture.runUntilContinued(input)
	for i, want := range []any{runs.ErrorInterrupted, runs.ErrorInterrupted, runs.SubmitResult{Queued: true}, runs.SubmitResult{Queued: true}} {
		if got := <-answers; got != want {
			t.Errorf("answer %d: got %v, want %v", i, got, want)
		}
	}
	wantEqual(t, "end of the run: outcome", fixture.finished[0].Outcome, runs.OutcomeInterrupt)
	mustEqual(t, "end of the run: number of interrupts", len(fixture.finished[0].Interrupts.Items), 2)
	wantEqual(t, "end of the run: index of the first interrupt", fixture.finished[0].Interrupts.Items[0].Index, 1)
	mustEqual(t, "next run: run ID", next.Run.ID, "r2")
	mustEqual(t, "next run: continued run", next.Continues, "")
	mustEqual(t, "next run: number of queued runs", len(next.Queue), 1)
	mustEqual(t, "run in the queue of the next run", next.Queue[0].Run.ID, "r3")
	ask, client := next.Resume.Items[0], next.Resume.Items[1]
	wantEqual(t, "decisions of the next run: kind", ask.Decision.Kind, runs.DecisionApprove)
	wantEqual(t, "decisions of the next run: arguments", ask.Decision.ArgsDigest, "args")
	wantEqual(t, "kind of the client tool call's decision", client.Decision.Kind, runs.DecisionAbandon)

	nextFixture := setup(t)
	var calls []runs.ToolCall
	nextFixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		calls = append(calls, in)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 20, Seq: 21}, nil
	}
	nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
	next.Queue = nil
	result, _ := nextFixture.run(next)
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of calls", len(calls), 1)
	mustEqual(t, "number of model calls", len(nextFixture.modelCalls), 1)
	begins := runs.Beginning{Input: next.Input, Digest: next.Digest}
	wantEqual(t, "tool call: call ID", calls[0].CallID, "ask")
	wantEqual(t, "tool call: message ID", calls[0].MessageID, "m")
	wantEqual(t, "tool call: ID", calls[0].ID, "0/tools/1")
	if calls[0].Decision == nil {
		t.Fatal("tool call: Decision = nil, want a value")
	}
	if calls[0].Beginning == nil {
		t.Fatal("tool call: Opens = nil, want a value")
	}
	wantEqual(t, "beginning that the first call opens", *calls[0].Beginning, begins)
	wantEqual(t, "model call: beginning", nextFixture.modelCalls[0].Beginning, runs.Beginning{})
	wantEqual(t, "model call: record before it", nextFixture.modelCalls[0].After, 20)
	wantEqual(t, "model call: closed step", nextFixture.modelCalls[0].Closes, "tools")
	wantEqual(t, "model call: ID", nextFixture.modelCalls[0].ID, "1/model")
}

// TestDecisionsArriveOneByOne: decisions may arrive one by one, from several callers. After the
// last one a run starts without an input. A recorded decision does not change.
func TestDecisionsArriveOneByOne(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	answers := make(chan any, 4)
	decide := func(decisions ...runs.Decision) func() {
		return func() { fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: decisions}, answers) }
	}
	rejects := runs.Decision{CallID: "ask", Kind: runs.DecisionReject, Digest: "other"}
	result := runs.Decision{CallID: "client", Kind: runs.DecisionToolResult, Digest: "r", Proposal: 71}
	fixture.env.RegisterDelayedCallback(decide(approvalOf("ask"), approvalOf("now"), approvalOf("client")), time.Second)
	fixture.env.RegisterDelayedCallback(decide(rejects, approvalOf("ask")), 2*time.Second)
	fixture.env.RegisterDelayedCallback(decide(result), 3*time.Second)
	next := fixture.runUntilContinued(input)
	taken := approvalOf("ask")
	taken.ArgsDigest = "args"
	unknown := runs.DecisionResult{Error: runs.ErrorUnknownCall}
	want := []any{
		runs.DecideResult{Results: []runs.DecisionResult{{}, unknown, unknown}},
		runs.DecideResult{Results: []runs.DecisionResult{{Error: runs.ErrorDecided, Recorded: &taken}, {Recorded: &taken}}},
		runs.DecideResult{Results: []runs.DecisionResult{{Resolved: true}}},
	}
	close(answers)
	var got []any
	for a := range answers {
		got = append(got, a)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	wantEqual(t, "next run: continued run", next.Continues, "r")
	if next.Run.ID == "r" {
		t.Errorf("next run: run ID = %v, want another than \"r\"", next.Run.ID)
	}
	wantEqual(t, "next run: input", next.Input, 0)
	wantEqual(t, "next run: digest", next.Digest, "")
	nextFixture := setup(t)
	var calls []runs.ToolCall
	nextFixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		nextFixture.mu.Lock()
		defer nextFixture.mu.Unlock()
		calls = append(calls, in)
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 20, Seq: 21}, nil
	}
	nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
	_, finish := nextFixture.run(next)
	mustEqual(t, "number of calls", len(calls), 2)
	wantEqual(t, "run that the first call continues", calls[0].Beginning.Continues, "r")
	wantEqual(t, "end of the run: continued run", finish.Continues, "r")
}

// TestInterruptsExpireAtRecordedTimes: a worker that dies right after it wrote the run's end
// leaves the activity to another worker. The interrupts expire at the times in the record.
func TestInterruptsExpireAtRecordedTimes(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(10, "ask", "other")
		for i := range a.Calls {
			a.Calls[i].Approval = &runs.Approval{ArgsDigest: "args", Remind: 2 * time.Hour}
		}
		a.Calls[0].Approval.Expires, a.InterruptCount = 24*time.Hour, 2
		return a, nil
	}
	opened := fixture.env.Now().Add(-time.Hour).UTC()
	expires := opened.Add(24 * time.Hour).Truncate(time.Millisecond)
	fixture.existingEnd = &runs.FinishResult{Outcome: runs.OutcomeInterrupt, Seq: 99, OpenedAt: opened, Expires: map[string]time.Time{"ask": expires}}
	fixture.env.ExecuteWorkflow(runs.TypeRun, input)
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	if p := parked.Interrupts; !p.OpenedAt.Equal(opened) || !p.Items[0].Expires.Equal(expires) || !p.Items[1].Expires.IsZero() {
		t.Errorf("interrupts: got opened %s, expiring %s and %s, want opened %s, the first expiring %s", p.OpenedAt, p.Items[0].Expires, p.Items[1].Expires, opened, expires)
	}
	wantEqual(t, "notification: event", fixture.notifications[0].Event, runs.EventOpened)
	wantEqual(t, "notification: at", fixture.notifications[0].At, opened)
	wantEqual(t, "notification: opened", fixture.notifications[0].OpenedAt, opened)
	wantEqual(t, "expiry of the first interrupt", fixture.notifications[0].Items[0].Expires, expires)
}

// TestApprovalsExpire: without a decision in time the call is not made. The thread continues or
// fails, as the agent defines. The thread is parked while it waits.
func TestApprovalsExpire(t *testing.T) {
	t.Parallel()
	for onExpiry, want := range map[runs.OnExpiry]runs.Outcome{
		runs.OnExpiryReject: runs.OutcomeSuccess, runs.OnExpirySkip: runs.OutcomeSuccess, runs.OnExpiryFail: runs.OutcomeError,
	} {
		fixture := setup(t)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
			a := modelAnswer(10, "ask")
			a.Calls[0].Approval, a.InterruptCount = &runs.Approval{ArgsDigest: "args", Expires: 24 * time.Hour, OnExpiry: onExpiry}, 1
			return a, nil
		}
		began := fixture.env.Now()
		fixture.env.ExecuteWorkflow(runs.TypeRun, input)
		var parked runs.ParkedInput
		decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
		took := fixture.env.Now().Sub(began)
		if took < runs.DefaultParkAfter {
			t.Errorf("time until the run was parked = %v, want at least %v", took, runs.DefaultParkAfter)
		}
		if took > 2*runs.DefaultParkAfter {
			t.Errorf("time until the run was parked = %v, want at most %v", took, 2*runs.DefaultParkAfter)
		}
		later := setup(t)
		later.env.SetStartTime(fixture.env.Now())
		answers := make(chan any, 1)
		later.env.RegisterDelayedCallback(func() {
			late := approvalOf("ask")
			later.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{late}}, answers)
		}, 48*time.Hour)
		later.env.ExecuteWorkflow(runs.TypeParked, parked)
		var next runs.Input
		decodeContinuation(t, later.env.GetWorkflowError(), runs.TypeRun, &next)
		if took := later.env.Now().Sub(began); took < 24*time.Hour || took > 25*time.Hour {
			t.Errorf("continued after %s, want about 24h", took)
		}
		nextFixture := setup(t)
		called := 0
		nextFixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
			called++
			wantEqual(t, "decision of the call: kind", in.Decision.Kind, runs.DecisionExpire)
			return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 20, Seq: 21}, nil
		}
		nextFixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
		result, _ := nextFixture.run(next)
		if result.Outcome != want || want == runs.OutcomeError && (result.Code != runs.CodeApprovalExpired || called > 0) {
			t.Errorf("%s: got %+v after %d calls, want %s", onExpiry, result, called, want)
		}
	}
}

// TestDecisionAfterExpiryIsRefused: a decision after the expiry time is refused as expired, even if
// the workflow's timer has not fired yet.
func TestDecisionAfterExpiryIsRefused(t *testing.T) {
	t.Parallel()
	parked := runs.ParkedInput{Run: input, Interrupts: &runs.Interrupts{MessageID: "m", Items: []runs.Interrupt{
		{Call: answerWithInterrupts(1).Calls[1], Index: 1, Expires: time.Now().Add(-time.Second)}, {Call: answerWithInterrupts(1).Calls[2], Index: 2},
	}}}
	fixture := setup(t)
	answers := make(chan any, 2)
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask")}}, answers)
		offered := queuedInput("r2")
		fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: "r2", Digest: offered.Digest, Offer: &offered}, answers)
	}, time.Second)
	fixture.env.ExecuteWorkflow(runs.TypeParked, parked)
	if got := (<-answers).(runs.DecideResult); got.Results[0].Error != runs.ErrorExpired {
		t.Errorf("result: got %+v, want expired", got)
	}
}

// TestInterruptsAreBounded: open interrupts continue as one payload. More interrupts than fit end
// the run.
func TestInterruptsAreBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{runs.MaxInterrupts, runs.MaxInterrupts + 1} {
		fixture := setup(t)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
			a := runs.ModelAnswer{Outcome: runs.OutcomeSuccess, Seq: 10, MessageID: "m", InterruptCount: n}
			for i := range n {
				a.Calls = append(a.Calls, runs.Call{ID: fmt.Sprint("c", i), Tool: "tool", Approval: &runs.Approval{ArgsDigest: "args"}})
			}
			return a, nil
		}
		in := input
		in.Limits.ParallelTools = 100
		fixture.env.ExecuteWorkflow(runs.TypeRun, in)
		wantEqual(t, fmt.Sprintf("%d calls: the run ends at the limit of calls", n), fixture.finished[0].Code == runs.CodeLimitParallelTools, n > runs.MaxInterrupts)
	}
}

// TestCancelOfEndedRunKeepsInterrupts: a cancel of a run that has ended leaves its interrupts open.
func TestCancelOfEndedRunKeepsInterrupts(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	fixture.env.RegisterDelayedCallback(func() { fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"}) }, time.Second)
	result := runs.Decision{CallID: "client", Kind: runs.DecisionToolResult, Digest: "r", Proposal: 71}
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask"), result}}, make(chan any, 1))
	}, time.Minute)
	if next := fixture.runUntilContinued(input); next.Continues != "r" {
		t.Errorf("next run: got %+v, want one that continues r", next)
	}
}

// TestQueueOfWaitingThreadIsBounded: the queue of a waiting thread is bounded like the queue of a
// running one, because it continues as one payload.
func TestQueueOfWaitingThreadIsBounded(t *testing.T) {
	t.Parallel()
	fixture := setupInterrupted(t)
	answers := make(chan any, 100)
	fixture.env.RegisterDelayedCallback(func() {
		for i := range 40 {
			in := queuedInput(fmt.Sprint(i, strings.Repeat("x", 300)))
			fixture.update(runs.UpdateSubmit, runs.SubmitRequest{RunID: in.Run.ID, Digest: in.Digest, OnBusy: runs.OnBusyEnqueue, Offer: &in}, answers)
		}
	}, time.Second)
	fixture.env.ExecuteWorkflow(runs.TypeRun, input)
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	close(answers)
	refused := 0
	for a := range answers {
		if a == runs.ErrorQueueFull {
			refused++
		}
	}
	if n := len(parked.Run.Queue); n == 0 || n+refused != 40 || refused == 0 {
		t.Errorf("got %d queued and %d refused, want 40 together", n, refused)
	}
	if _, err := runs.DataConverter().ToPayload(parked); err != nil {
		t.Error(err)
	}
}

// TestLanesOfCancelledDecisions: the decisions about calls that a cancelled run does not make are recorded
// on the lanes on which the calls would have been made: a lost workflow task may have made them, and their
// results are there.
func TestLanesOfCancelledDecisions(t *testing.T) {
	t.Parallel()
	f := setup(t)
	lanes := map[string]int{}
	f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		lanes[in.CallID] = in.Lane
		wantEqual(t, in.CallID+": cancelled", in.Cancelled, true)
		return runs.ToolAnswer{Outcome: runs.OutcomeCancelled, Opened: 11, Seq: 20}, nil
	}
	in := input
	in.Cancelled, in.Resume = true, &runs.Interrupts{RunID: "r0", MessageID: "m"}
	for i, sequence := range []int{0, 1, 1, 2, 0, 2} {
		id := fmt.Sprint("c", i)
		in.Resume.Items = append(in.Resume.Items, runs.Interrupt{
			Call: runs.Call{ID: id, Tool: "tool", Sequence: sequence, Approval: &runs.Approval{}}, Index: i, Decision: &runs.Decision{CallID: id, Kind: runs.DecisionApprove},
		})
	}
	f.run(in)
	if want := map[string]int{"c0": 0, "c1": 1, "c2": 1, "c3": 2, "c4": 3, "c5": 2}; !maps.Equal(lanes, want) {
		t.Errorf("lanes = %v, want %v", lanes, want)
	}
}
