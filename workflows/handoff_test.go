package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// handoffTarget is the agent that receives the thread. Some of its limits are tighter than those of the
// run's agent.
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

func setupHandoff(t *testing.T, first runs.ModelAnswer) *handoffFixture {
	t.Helper()
	f := &handoffFixture{fixture: setup(t)}
	at := slices.IndexFunc(first.Calls, func(c runs.Call) bool { return c.ID == "over" })
	first.Handoff = &runs.Handoff{CallID: "over", Tool: "transfer_to_b", Index: at, To: handoffTarget}
	f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Agent == "a" && in.Turn == 1 && in.Beginning.Continues == "" && in.Closes == "" {
			return first, nil
		}
		return modelAnswer(30), nil
	}
	f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls = append(f.calls, in)
		done := runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 20 + uint64(len(f.calls))}
		done.HandedOver = in.HandOverTo != "" && !f.refusesHandoff && (in.Decision == nil || in.Decision.Kind == runs.DecisionApprove)
		return done, nil
	}
	return f
}

// madeCalls returns the calls in order, each with the agent that makes it.
func (f *handoffFixture) madeCalls() (all []string) {
	for _, c := range f.calls {
		all = append(all, c.Agent+" "+c.CallID+" "+c.HandOverTo)
	}
	return all
}

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
	f := setupHandoff(t, modelAnswer(10, "over", "c1", "c2"))
	result, finish := f.run(input)
	if last := f.madeCalls()[2]; result.Outcome != runs.OutcomeSuccess || len(f.calls) != 3 || last != "a over b" {
		t.Errorf("got %+v after the calls %q", result, f.madeCalls())
	}
	if c := f.calls[2]; c.ID != "1/tools/0" || c.Open != f.calls[0].Open || c.After != f.calls[0].After {
		t.Errorf("handoff call: got %+v", c)
	}
	if finish.Agent != "b" || finish.Revision != "vb" || !finish.HandedOver {
		t.Errorf("end of the run: got %+v", finish)
	}
	var spoke []string
	for _, m := range f.modelCalls {
		spoke = append(spoke, m.Agent+"@"+m.Revision)
	}
	if next := f.modelCalls[1]; !slices.Equal(spoke, []string{"a@v", "b@vb"}) || next.Turn != 2 || next.Handoffs != 1 || !next.Priced {
		t.Errorf("agents of the turns: got %v, the second called with %+v", spoke, next)
	}
}

// TestRefusedHandoff: a handoff call that does not hand off leaves the thread with its agent.
func TestRefusedHandoff(t *testing.T) {
	t.Parallel()
	f := setupHandoff(t, modelAnswer(10, "over"))
	f.refusesHandoff = true
	if _, finish := f.run(input); finish.Agent != "a" || finish.HandedOver || f.modelCalls[1].Agent != "a" || f.modelCalls[1].Handoffs != 0 {
		t.Errorf("end of the run: got %+v after the model call %+v", finish, f.modelCalls[1])
	}
}

// TestHandoffSurvivesContinueAsNew: after a handoff the run keeps its counts and has the tighter limits of
// both agents, also across executions. Queued runs of the agent that handed off belong to the
// target agent. Queued runs of a third agent do not.
func TestHandoffSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	f := setupHandoff(t, modelAnswer(10, "over"))
	first := f.model
	f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		f.env.SetContinueAsNewSuggested(true)
		return first(in)
	}
	began := f.env.Now()
	f.env.SetStartTime(began)
	next := f.runUntilContinued(input)
	want := runs.Limits{Turns: 5, Tokens: 500, Duration: 10 * time.Minute, ParallelTools: 2, Cost: 7}
	if next.Agent != "b" || next.Revision != "vb" || next.Limits != want || next.OnNewInput != runs.OpenQueue || next.OnMissingResult != runs.OpenAbandon {
		t.Errorf("next execution: got %+v", next)
	}
	if left := next.Progress.Deadline.Sub(began); left != 10*time.Minute || next.Progress.Turn != 2 || next.Progress.Handoffs != 1 {
		t.Errorf("progress of the next execution: got %+v, with %s left", next.Progress, left)
	}
	other, third := queuedInput("r2b"), queuedInput("r3")
	other.Agent, third.Agent = "b", "c"
	next.Queue = []runs.Input{queuedInput("r2"), other, queuedInput("r2c"), third, queuedInput("r4")}

	again := setupHandoff(t, modelAnswer(10))
	after := again.runUntilContinued(next)
	if after.Run.ID != "r2" || after.Agent != "b" || after.Revision != "vb" || after.Limits != handoffTarget.Limits || after.Progress != nil {
		t.Errorf("queued run r2: got %+v", after)
	}
	if finish := again.finished[0]; finish.Agent != "b" || !finish.HandedOver {
		t.Errorf("end of the run: got %+v", finish)
	}
	for _, id := range []string{"r2b", "r2c"} {
		again = setupHandoff(t, modelAnswer(10))
		if after = again.runUntilContinued(after); after.Run.ID != id || after.Agent != "b" {
			t.Errorf("next run: got %+v", after)
		}
	}
	again = setupHandoff(t, modelAnswer(10))
	if after = again.runUntilContinued(after); after.Run.ID != "r3" || after.Agent != "c" || after.HandedOver != nil {
		t.Errorf("next run: got %+v, want r3 of agent c", after)
	}
	again = setupHandoff(t, modelAnswer(10))
	if after = again.runUntilContinued(after); after.Run.ID != "r4" || after.Agent != "a" || after.HandedOver != nil {
		t.Errorf("next run: got %+v, want r4 of agent a", after)
	}
}

// TestHandoffWaitsForDecisions: while another call of the turn waits for approval, the thread stays
// with its agent. That agent makes the approved call and then hands off.
func TestHandoffWaitsForDecisions(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "over", "ask", "c2")
	answer.Calls[1].Approval, answer.WaitCount = &runs.Approval{Rule: 1, Args: "args"}, 1
	f := setupHandoff(t, answer)
	f.env.RegisterDelayedCallback(func() {
		f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask")}}, make(chan any, 1))
	}, time.Minute)
	next := f.runUntilContinued(input)
	f.wantCalls("a c2 ")
	if end := f.finished[0]; end.Outcome != runs.OutcomeInterrupt || end.HandedOver || len(end.Interrupts.Items) != 1 || next.Agent != "a" || next.HandedOver != nil {
		t.Errorf("got the end %+v and the next run %+v", end, next)
	}
	again := setupHandoff(t, modelAnswer(30))
	if _, finish := again.run(next); finish.Agent != "b" || again.modelCalls[0].Agent != "b" {
		t.Errorf("end of the run: got %+v", finish)
	}
	again.wantCalls("a ask ", "a over b")
	if c := again.calls[1]; c.MessageID != "m" || c.ID != "0/tools/0" || c.Opens == nil {
		t.Errorf("handoff call: got %+v", c)
	}
}

// TestHandoffWithApproval: a handoff can need an approval like any call. A rejected
// handoff does not hand off.
func TestHandoffWithApproval(t *testing.T) {
	t.Parallel()
	for verdict, has := range map[runs.DecisionKind]string{runs.DecisionApprove: "b", runs.DecisionReject: "a"} {
		answer := modelAnswer(10, "c0", "over")
		answer.Calls[1].Approval, answer.WaitCount = &runs.Approval{Rule: 1, Args: "args"}, 1
		f := setupHandoff(t, answer)
		decision := approvalOf("over")
		decision.Kind = verdict
		f.env.RegisterDelayedCallback(func() {
			f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{decision}}, make(chan any, 1))
		}, time.Minute)
		next := f.runUntilContinued(input)
		f.wantCalls("a c0 ")
		again := setupHandoff(t, modelAnswer(30))
		if _, finish := again.run(next); finish.Agent != has || again.modelCalls[0].Agent != has {
			t.Errorf("%s: end of the run: got %+v, want the agent %s", verdict, finish, has)
		}
		again.wantCalls("a over b")
		if d := again.calls[0].Decision; d == nil || d.Kind != verdict || d.Args != "args" {
			t.Errorf("%s: decision of the call: got %+v", verdict, d)
		}
	}
}

// TestApprovedHandoffWaitsForQuestion: an approved handoff waits while another call of its turn asks a
// question. It keeps its decision.
func TestApprovedHandoffWaitsForQuestion(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "over", "ask")
	for i := range answer.Calls {
		answer.Calls[i].Approval = &runs.Approval{Rule: 1, Args: "args"}
	}
	answer.WaitCount = 2
	decide := func(f *handoffFixture, decisions ...runs.Decision) {
		f.env.RegisterDelayedCallback(func() {
			f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: decisions}, make(chan any, 1))
		}, time.Minute)
	}
	f := setupHandoff(t, answer)
	decide(f, approvalOf("ask"), approvalOf("over"))
	next := f.runUntilContinued(input)

	f = setupHandoff(t, modelAnswer(30))
	makes := f.tool
	f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		done, err := makes(in)
		done.Question = &runs.AskedQuestion{CallID: in.CallID, Tool: "tool", Number: 1}
		return done, err
	}
	decide(f, runs.Decision{CallID: "ask", Kind: runs.DecisionAnswer, Question: 1, Digest: "d2", Input: 71})
	next = f.runUntilContinued(next)
	f.wantCalls("a ask ")
	if end := f.finished[0]; len(end.Interrupts.Items) != 1 || end.Interrupts.Items[0].ID != "ask" || next.Agent != "a" {
		t.Errorf("got the interrupts %+v and the next run %+v", end.Interrupts, next)
	}

	f = setupHandoff(t, modelAnswer(30))
	if _, finish := f.run(next); finish.Agent != "b" {
		t.Errorf("end of the run: got %+v", finish)
	}
	f.wantCalls("a ask ", "a over b")
	if d := f.calls[1].Decision; d == nil || d.Kind != runs.DecisionApprove || d.Input != 70 {
		t.Errorf("decision of the handoff: got %+v", d)
	}
}

// TestHandoffWithClientToolCalls: open client tool calls do not delay a handoff. The target agent
// receives their results.
func TestHandoffWithClientToolCalls(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "client", "over")
	answer.Calls[0].Client, answer.WaitCount = true, 1
	f := setupHandoff(t, answer)
	f.env.ExecuteWorkflow(runs.TypeRun, input) // it continues as a thread that waits for the result
	if end := f.finished[0]; end.Outcome != runs.OutcomeSuccess || end.Agent != "b" || len(end.Interrupts.Items) != 1 {
		t.Errorf("end of the run: got %+v", end)
	}
	f.wantCalls("a over b")
}

// TestRunAfterHandoff: a run that decisions start after a handoff belongs to the target agent,
// with that agent's limits.
func TestRunAfterHandoff(t *testing.T) {
	t.Parallel()
	f := setupHandoff(t, modelAnswer(10, "over"))
	first := f.model
	f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Agent == "b" {
			answer := modelAnswer(30, "ask")
			answer.Calls[0].Approval, answer.WaitCount = &runs.Approval{Rule: 1, Args: "args"}, 1
			return answer, nil
		}
		return first(in)
	}
	f.env.RegisterDelayedCallback(func() {
		f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("ask")}}, make(chan any, 1))
	}, time.Minute)
	next := f.runUntilContinued(input)
	if next.Continues != "r" || next.Agent != "b" || next.Limits != handoffTarget.Limits || next.Progress != nil {
		t.Errorf("next run: got %+v", next)
	}
	if set := f.finished[0].Interrupts; set.Agent != "b" || set.Revision != "vb" {
		t.Errorf("interrupts: got the agent %s, revision %s", set.Agent, set.Revision)
	}
}

// TestHandoffOfHeldRun: a held run hands off in the same turn, after all decisions.
func TestHandoffOfHeldRun(t *testing.T) {
	t.Parallel()
	answer := modelAnswer(10, "over", "ask")
	answer.Calls[1].Approval, answer.WaitCount = &runs.Approval{Rule: 1, Args: "args"}, 1
	answer.Handoff = &runs.Handoff{CallID: "over", Tool: "transfer_to_b", To: handoffTarget}
	f := setupHeld(t)
	f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn == 1 {
			return answer, nil
		}
		return modelAnswer(30), nil
	}
	makes := f.tool
	f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		done, err := makes(in)
		done.HandedOver = in.HandOverTo != ""
		return done, err
	}
	f.decide(time.Minute, approvalOf("ask"))
	_, finish := f.run(heldInput())
	if made := f.madeCalls(); !slices.Equal(made, []string{"ask", "over"}) || finish.Agent != "b" || f.modelCalls[1].Agent != "b" {
		t.Errorf("got the calls %v and the end %+v", made, finish)
	}
}
