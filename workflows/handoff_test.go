package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// handoffTarget is the agent that receives the thread. Some of its limits are tighter than those of
// the run's agent.
var handoffTarget = runs.HandoffTarget{
	AgentRef:   runs.AgentRef{Agent: "b", Revision: "vb", Limits: runs.Limits{Turns: 9, Tokens: 500, Duration: 10 * time.Minute, ParallelTools: 2, Cost: 7}},
	OnNewInput: runs.OpenQueue, OnMissingResult: runs.OpenAbandon,
}

// handoffFixture is a fixture whose agent a hands off its thread in its first turn, with the call
// "over".
type handoffFixture struct {
	*fixture
	calls          []runs.ToolCall
	refusesHandoff bool // the handoff call does not hand off
}

// setupHandoff returns a fixture whose first turn has the given answer.
func setupHandoff(t *testing.T, first runs.ModelAnswer) *handoffFixture {
	t.Helper()
	fixture := &handoffFixture{fixture: setup(t)}
	at := slices.IndexFunc(first.Calls, func(c runs.Call) bool { return c.ID == "over" })
	first.Handoff = &runs.Handoff{CallID: "over", Tool: "transfer_to_b", Index: at, To: handoffTarget}
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Agent == "a" && in.Turn == 1 && in.Beginning.Continues == "" && in.Closes == "" {
			return first, nil
		}
		return modelAnswer(30), nil
	}
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		fixture.mu.Lock()
		defer fixture.mu.Unlock()
		fixture.calls = append(fixture.calls, in)
		done := runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 20 + uint64(len(fixture.calls))}
		done.HandedOver = in.HandOverTo != "" && !fixture.refusesHandoff && (in.Decision == nil || in.Decision.Kind == runs.DecisionApprove)
		return done, nil
	}
	return fixture
}

// madeCalls returns the calls in order, each with the agent that makes it.
func (f *handoffFixture) madeCalls() (all []string) {
	for _, c := range f.calls {
		all = append(all, c.Agent+" "+c.CallID+" "+c.HandOverTo)
	}
	return all
}

// wantCalls checks the names of the tool calls, in their order.
func (f *handoffFixture) wantCalls(want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.madeCalls()); diff != "" {
		f.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestHandoff: a handoff is made after the other calls of its turn, at any position among them. The
// next turn belongs to the target agent.
func TestHandoff(t *testing.T) {
	t.Parallel()
	fixture := setupHandoff(t, modelAnswer(10, "over", "c1", "c2"))
	result, finish := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of calls", len(fixture.calls), 3)
	wantEqual(t, "last call", fixture.madeCalls()[2], "a over b")
	wantEqual(t, "handoff call: ID", fixture.calls[2].ID, "1/tools/0")
	wantEqual(t, "handoff call: open", fixture.calls[2].TurnStepID, fixture.calls[0].TurnStepID)
	wantEqual(t, "handoff call: record before it", fixture.calls[2].After, fixture.calls[0].After)
	wantEqual(t, "end of the run: agent", finish.Agent, "b")
	wantEqual(t, "end of the run: revision", finish.Revision, "vb")
	wantEqual(t, "end of the run: handed over", finish.HandedOver, true)
	var agentsOfTurns []string
	for _, m := range fixture.modelCalls {
		agentsOfTurns = append(agentsOfTurns, m.Agent+"@"+m.Revision)
	}
	wantEqual(t, "agents of the turns", agentsOfTurns, []string{"a@v", "b@vb"})
	wantEqual(t, "turn of the second model call", fixture.modelCalls[1].Turn, 2)
	wantEqual(t, "number of handoffs before the second model call", fixture.modelCalls[1].Handoffs, 1)
	wantEqual(t, "second model call is priced", fixture.modelCalls[1].Priced, true)
}

// TestRefusedHandoff: a handoff call that does not hand off leaves the thread with its agent.
func TestRefusedHandoff(t *testing.T) {
	t.Parallel()
	fixture := setupHandoff(t, modelAnswer(10, "over"))
	fixture.refusesHandoff = true
	_, finish := fixture.run(input)
	wantEqual(t, "end of the run: agent", finish.Agent, "a")
	wantEqual(t, "end of the run: handed over", finish.HandedOver, false)
	wantEqual(t, "agent of the second model call", fixture.modelCalls[1].Agent, "a")
	wantEqual(t, "number of handoffs before the second model call", fixture.modelCalls[1].Handoffs, 0)
}

// TestHandoffSurvivesContinueAsNew: after a handoff the run keeps its counts and has the tighter
// limits of both agents, also across executions. Queued runs of the agent that handed off belong to
// the target agent. Queued runs of a third agent do not.
func TestHandoffSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	fixture := setupHandoff(t, modelAnswer(10, "over"))
	first := fixture.model
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		fixture.env.SetContinueAsNewSuggested(true)
		return first(in)
	}
	began := fixture.env.Now()
	fixture.env.SetStartTime(began)
	next := fixture.runUntilContinued(input)
	want := runs.Limits{Turns: 5, Tokens: 500, Duration: 10 * time.Minute, ParallelTools: 2, Cost: 7}
	wantEqual(t, "next execution: agent", next.Agent, "b")
	wantEqual(t, "next execution: revision", next.Revision, "vb")
	wantEqual(t, "next execution: limits", next.Limits, want)
	wantEqual(t, "next execution: policy for new inputs", next.OnNewInput, runs.OpenQueue)
	wantEqual(t, "next execution: policy for missing results", next.OnMissingResult, runs.OpenAbandon)
	left := next.Progress.Deadline.Sub(began)
	wantEqual(t, "time left", left, 10*time.Minute)
	wantEqual(t, "progress of the next execution: turn", next.Progress.Turn, 2)
	wantEqual(t, "progress of the next execution: handoffs", next.Progress.Handoffs, 1)
	other, third := queuedInput("r2b"), queuedInput("r3")
	other.Agent, third.Agent = "b", "c"
	next.Queue = []runs.Input{queuedInput("r2"), other, queuedInput("r2c"), third, queuedInput("r4")}

	nextFixture := setupHandoff(t, modelAnswer(10))
	nextFixture.finishLate()
	after := nextFixture.runUntilContinued(next)
	wantEqual(t, "queued run r2: run ID", after.Run.ID, "r2")
	wantEqual(t, "queued run r2: agent", after.Agent, "b")
	wantEqual(t, "queued run r2: revision", after.Revision, "vb")
	wantEqual(t, "queued run r2: limits", after.Limits, handoffTarget.Limits)
	if after.Progress != nil {
		t.Errorf("queued run r2: Progress = %+v, want nil", after.Progress)
	}
	wantEqual(t, "end of the run: agent", nextFixture.finished[0].Agent, "b")
	wantEqual(t, "end of the run: handed over", nextFixture.finished[0].HandedOver, true)
	for _, id := range []string{"r2b", "r2c"} {
		nextFixture = setupHandoff(t, modelAnswer(10))
		nextFixture.finishLate()
		after = nextFixture.runUntilContinued(after)
		wantEqual(t, "next run: run ID", after.Run.ID, id)
		wantEqual(t, "next run: agent", after.Agent, "b")
	}
	nextFixture = setupHandoff(t, modelAnswer(10))
	nextFixture.finishLate()
	if after = nextFixture.runUntilContinued(after); after.Run.ID != "r3" || after.Agent != "c" || after.HandedOver != nil {
		t.Errorf("next run: got %+v, want r3 of agent c", after)
	}
	nextFixture = setupHandoff(t, modelAnswer(10))
	nextFixture.finishLate()
	if after = nextFixture.runUntilContinued(after); after.Run.ID != "r4" || after.Agent != "a" || after.HandedOver != nil {
		t.Errorf("next run: got %+v, want r4 of agent a", after)
	}
}

// TestHandoffWaitsForDecisions: while another call of the turn waits for approval, the thread stays
// with its agent. That agent makes the approved call and then hands off.
func TestHandoffWaitsForDecisions(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "over", "ask", "c2")
	answer.Calls[1].Approval, answer.InterruptCount = &runs.Approval{Rule: 1, ArgsDigest: "args"}, 1
	fixture := setupHandoff(t, answer)
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask")}}, make(chan any, 1))
	}, time.Minute)
	next := fixture.runUntilContinued(input)
	fixture.wantCalls("a c2 ")
	wantEqual(t, "outcome of the run", fixture.finished[0].Outcome, runs.OutcomeInterrupt)
	wantEqual(t, "run is handed over", fixture.finished[0].HandedOver, false)
	wantEqual(t, "number of interrupts", len(fixture.finished[0].Interrupts.Items), 1)
	wantEqual(t, "next run: agent", next.Agent, "a")
	if next.HandedOver != nil {
		t.Errorf("handoff of the next run = %+v, want nil", next.HandedOver)
	}
	nextFixture := setupHandoff(t, modelAnswer(30))
	_, finish := nextFixture.run(next)
	wantEqual(t, "end of the run: agent", finish.Agent, "b")
	wantEqual(t, "agent of the model call", nextFixture.modelCalls[0].Agent, "b")
	nextFixture.wantCalls("a ask ", "a over b")
	wantEqual(t, "handoff call: message ID", nextFixture.calls[1].MessageID, "m")
	wantEqual(t, "handoff call: ID", nextFixture.calls[1].ID, "0/tools/0")
	if nextFixture.calls[1].Beginning == nil {
		t.Fatal("handoff call: Opens = nil, want a value")
	}
}

// TestHandoffWithApproval: a handoff can need an approval like any call. A rejected
// handoff does not hand off.
func TestHandoffWithApproval(t *testing.T) {
	t.Parallel()
	for kind, wantAgent := range map[runs.DecisionKind]string{runs.DecisionApprove: "b", runs.DecisionReject: "a"} {
		answer := modelAnswer(10, "c0", "over")
		answer.Calls[1].Approval, answer.InterruptCount = &runs.Approval{Rule: 1, ArgsDigest: "args"}, 1
		fixture := setupHandoff(t, answer)
		decision := approvalOf("over")
		decision.Kind = kind
		fixture.env.RegisterDelayedCallback(func() {
			fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{decision}}, make(chan any, 1))
		}, time.Minute)
		next := fixture.runUntilContinued(input)
		fixture.wantCalls("a c0 ")
		nextFixture := setupHandoff(t, modelAnswer(30))
		if _, finish := nextFixture.run(next); finish.Agent != wantAgent || nextFixture.modelCalls[0].Agent != wantAgent {
			t.Errorf("%s: end of the run: got %+v, want the agent %s", kind, finish, wantAgent)
		}
		nextFixture.wantCalls("a over b")
		if nextFixture.calls[0].Decision == nil {
			t.Fatalf("%s: decision of the first call = nil, want a value", kind)
		}
		wantEqual(t, fmt.Sprintf("%s: kind of the first call's decision", kind), nextFixture.calls[0].Decision.Kind, kind)
		wantEqual(t, fmt.Sprintf("%s: arguments of the first call's decision", kind), nextFixture.calls[0].Decision.ArgsDigest, "args")
	}
}

// TestApprovedHandoffWaitsForQuestion: an approved handoff waits while another call of its turn
// asks a question. It keeps its decision.
func TestApprovedHandoffWaitsForQuestion(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "over", "ask")
	for i := range answer.Calls {
		answer.Calls[i].Approval = &runs.Approval{Rule: 1, ArgsDigest: "args"}
	}
	answer.InterruptCount = 2
	decide := func(fixture *handoffFixture, decisions ...runs.Decision) {
		fixture.env.RegisterDelayedCallback(func() {
			fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: decisions}, make(chan any, 1))
		}, time.Minute)
	}
	fixture := setupHandoff(t, answer)
	decide(fixture, approvalOf("ask"), approvalOf("over"))
	next := fixture.runUntilContinued(input)

	fixture = setupHandoff(t, modelAnswer(30))
	makeCall := fixture.tool
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		done, err := makeCall(in)
		done.Question = &runs.AskedQuestion{CallID: in.CallID, Tool: "tool", Number: 1}
		return done, err
	}
	decide(fixture, runs.Decision{CallID: "ask", Kind: runs.DecisionAnswer, Question: 1, Digest: "d2", Proposal: 71})
	next = fixture.runUntilContinued(next)
	fixture.wantCalls("a ask ")
	mustEqual(t, "number of interrupts", len(fixture.finished[0].Interrupts.Items), 1)
	wantEqual(t, "ID of the interrupt", fixture.finished[0].Interrupts.Items[0].ID, "ask")
	wantEqual(t, "next run: agent", next.Agent, "a")

	fixture = setupHandoff(t, modelAnswer(30))
	_, finish := fixture.run(next)
	wantEqual(t, "end of the run: agent", finish.Agent, "b")
	fixture.wantCalls("a ask ", "a over b")
	if fixture.calls[1].Decision == nil {
		t.Fatal("decision of the handoff = nil, want a value")
	}
	wantEqual(t, "decision of the handoff: kind", fixture.calls[1].Decision.Kind, runs.DecisionApprove)
	wantEqual(t, "decision of the handoff: input", fixture.calls[1].Decision.Proposal, 70)
}

// TestHandoffWithClientToolCalls: open client tool calls do not delay a handoff. The target agent
// receives their results.
func TestHandoffWithClientToolCalls(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "client", "over")
	answer.Calls[0].Client, answer.InterruptCount = true, 1
	fixture := setupHandoff(t, answer)
	fixture.env.ExecuteWorkflow(runs.TypeRun, input) // it continues as a thread that waits for the result
	wantEqual(t, "end of the run: outcome", fixture.finished[0].Outcome, runs.OutcomeSuccess)
	wantEqual(t, "end of the run: agent", fixture.finished[0].Agent, "b")
	wantEqual(t, "end of the run: number of interrupts", len(fixture.finished[0].Interrupts.Items), 1)
	fixture.wantCalls("a over b")
}

// TestRunAfterHandoff: a run that decisions start after a handoff belongs to the target agent,
// with that agent's limits.
func TestRunAfterHandoff(t *testing.T) {
	t.Parallel()
	fixture := setupHandoff(t, modelAnswer(10, "over"))
	first := fixture.model
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Agent == "b" {
			answer := modelAnswer(30, "ask")
			answer.Calls[0].Approval, answer.InterruptCount = &runs.Approval{Rule: 1, ArgsDigest: "args"}, 1
			return answer, nil
		}
		return first(in)
	}
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask")}}, make(chan any, 1))
	}, time.Minute)
	next := fixture.runUntilContinued(input)
	wantEqual(t, "next run: continued run", next.Continues, "r")
	wantEqual(t, "next run: agent", next.Agent, "b")
	wantEqual(t, "next run: limits", next.Limits, handoffTarget.Limits)
	if next.Progress != nil {
		t.Errorf("next run: Progress = %+v, want nil", next.Progress)
	}
	wantEqual(t, "agent of the interrupts", fixture.finished[0].Interrupts.Agent, "b")
	wantEqual(t, "revision of the interrupts", fixture.finished[0].Interrupts.Revision, "vb")
}

// TestHandoffOfHeldRun: a held run hands off in the same turn, after all decisions.
func TestHandoffOfHeldRun(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "over", "ask")
	answer.Calls[1].Approval, answer.InterruptCount = &runs.Approval{Rule: 1, ArgsDigest: "args"}, 1
	answer.Handoff = &runs.Handoff{CallID: "over", Tool: "transfer_to_b", To: handoffTarget}
	fixture := setupHeld(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn == 1 {
			return answer, nil
		}
		return modelAnswer(30), nil
	}
	makeCall := fixture.tool
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		done, err := makeCall(in)
		done.HandedOver = in.HandOverTo != ""
		return done, err
	}
	fixture.decide(time.Minute, approvalOf("ask"))
	_, finish := fixture.run(heldInput())
	made := fixture.madeCalls()
	mustEqual(t, "calls", made, []string{"ask", "over"})
	wantEqual(t, "end of the run: agent", finish.Agent, "b")
	wantEqual(t, "agent of the second model call", fixture.modelCalls[1].Agent, "b")
}
