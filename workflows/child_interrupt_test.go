package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// branchFixture is a fixture whose agent is one step with branches. The first branch is busy for an
// hour. Each other branch asks for approval of a call that is named by the branch's number.
type branchFixture struct {
	*fixture
	branches           runs.Branches
	approval           runs.Approval
	announced          []string // announced calls, with the time since the beginning
	calls              []string // the calls that were made
	branchFailures     []pipeline.BranchFailure
	seq                uint64
	secondCall         bool                          // each branch asks for a second call, named like the first with a + appended
	busyBranchFails    bool                          // the busy branch fails
	onSuspendedAdvance func()                        // called when a suspended branch advances, after only interrupts are left
	onAnnounce         func(runs.AnnounceInterrupts) // called when interrupts are announced
	asksClient         bool                          // the branches ask for results of client tool calls
}

// setupBranches returns a fixture with a number of branches.
func setupBranches(t *testing.T, branches int) *branchFixture {
	t.Helper()
	fixture := &branchFixture{
		fixture: setupPrograms(t, nil), approval: runs.Approval{ArgsDigest: "d"}, seq: 10,
		branches: runs.Branches{Path: "all", Count: branches, Concurrency: branches, StopOnFailure: true},
	}
	fixture.advance = fixture.advanceOnce
	began := fixture.env.Now()
	fixture.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AnnounceInterrupts) (uint64, error) {
		if fixture.onAnnounce != nil {
			fixture.onAnnounce(in)
		}
		fixture.mu.Lock()
		defer fixture.mu.Unlock()
		for _, item := range in.Interrupts.Items {
			fixture.announced = append(fixture.announced, fmt.Sprintf("%s %s", item.ID, fixture.env.Now().Sub(began)))
		}
		fixture.seq++
		return fixture.seq, nil
	}, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		fixture.mu.Lock()
		defer fixture.mu.Unlock()
		kind := string(in.Decision.Kind)
		if in.Cancelled {
			kind = "not made, " + kind
		}
		fixture.calls = append(fixture.calls, fmt.Sprintf("%s %s %s", in.CallID, kind, fixture.env.Now().Sub(began)))
		fixture.seq++
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: fixture.seq, Seq: fixture.seq}, nil
	}
	return fixture
}

// advanceOnce is the advance activity, for the agent's own steps and those of a branch.
func (f *branchFixture) advanceOnce(in runs.AdvanceInput) (runs.AdvanceResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	next := runs.AdvanceResult{Seq: f.seq, TreePosition: in.Position.TreePosition}
	if len(in.Suspended) > 0 && f.onSuspendedAdvance != nil {
		f.onSuspendedAdvance()
	}
	begins := in.Position.Event != nil && in.Position.Event.Kind == pipeline.EventBegun && !in.Resumes && len(in.Suspended) == 0
	switch {
	case in.Child == nil && begins:
		fan := f.branches
		next.Branches = &fan
	case in.Position.Event != nil && in.Position.Event.Kind == pipeline.EventFailed:
		next.Failed = in.Position.Event.Failure
	case in.Child == nil && in.Position.Branches != nil:
		f.branchFailures = in.Position.Branches.BranchFailures()
	case begins && in.Child.Index == 0:
		next.Sleep = time.Hour
	case f.busyBranchFails && in.Child != nil && in.Child.Index == 0:
		next.Failed = &pipeline.Failure{Code: "broken"}
	case begins:
		id := fmt.Sprint(in.Child.Index)
		answer := modelAnswer(next.Seq, id)
		approve := f.approval
		if f.secondCall {
			answer = modelAnswer(next.Seq, id, id+"+")
		}
		for i := range answer.Calls {
			if answer.Calls[i].Client = f.asksClient; !f.asksClient {
				answer.Calls[i].Approval = &approve
			}
		}
		answer.InterruptCount = len(answer.Calls)
		next.Answer = &answer
		next.Active = &runs.ActiveStep{
			AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: input.Limits}, CallID: id,
			PipelineStep: runs.StepRef{Path: "ask" + id, Name: "ask" + id, Inline: true},
		}
	}
	return next, nil
}

// decide approves the calls of branches after some time. The function it returns waits for the
// results.
func (f *branchFixture) decide(after time.Duration, branches ...string) (answers func() []runs.DecisionResult) {
	answered := make(chan any, 1)
	f.env.RegisterDelayedCallback(func() {
		var all []runs.Decision
		for _, id := range branches {
			all = append(all, approvalOf(id))
		}
		f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: all}, answered)
	}, after)
	return func() []runs.DecisionResult { return (<-answered).(runs.DecideResult).Results }
}

// branchInput returns the input of a run whose agent is a pipeline.
func branchInput() runs.Input {
	in := input
	in.Steps, in.Limits.Duration = true, 2*time.Hour
	return in
}

// TestDecidedBranchContinuesWhileSiblingRuns: each branch continues when its interrupt is decided,
// while its sibling works. The run does not end with an interrupt.
func TestDecidedBranchContinuesWhileSiblingRuns(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 4)
	fixture.decide(time.Minute, "2")
	fixture.decide(2*time.Minute, "3", "1")
	repeated := fixture.decide(3*time.Minute, "2")
	result, _ := fixture.run(branchInput())
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of ends", len(fixture.finished), 1)
	wantEqual(t, "number of branch failures", len(fixture.branchFailures), 0)
	slices.Sort(fixture.announced)
	slices.Sort(fixture.calls)
	if want := []string{"1 0s", "2 0s", "3 0s"}; !slices.Equal(fixture.announced, want) {
		t.Errorf("announced interrupts: got %q, want %q", fixture.announced, want)
	}
	if want := []string{"1 approve 2m0s", "2 approve 1m0s", "3 approve 2m0s"}; !slices.Equal(fixture.calls, want) {
		t.Errorf("calls: got %q, want %q", fixture.calls, want)
	}
	if r := repeated()[0]; r.Error != "" && r.Error != runs.ErrorUnknownCall {
		t.Errorf("the same decision again: error = %q, want none or %q", r.Error, runs.ErrorUnknownCall)
	}
	events := map[runs.NotificationEvent]int{}
	for _, n := range fixture.notifications {
		events[n.Event] += len(n.Items)
	}
	if events[runs.EventOpened] != 3 || events[runs.EventDecided] != 3 {
		t.Errorf("notifications: got %v, want 3 opened and 3 decided", events)
	}
}

// TestRunEndsWithInterruptsOfBranches: a run ends with the interrupts that are open when all other
// branches are done. Their votes continue in the next run, and no notification is sent twice.
func TestRunEndsWithInterruptsOfBranches(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 3)
	fixture.approval.Quorum = 2
	vote := runs.Decision{CallID: "1", Kind: runs.DecisionApprove, Digest: "one", By: "one", ArgsDigest: "d"}
	fixture.env.RegisterDelayedCallback(func() {
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{vote}}, make(chan any, 1))
	}, time.Minute)
	in := branchInput()
	in.ParkAfter = 3 * time.Hour
	fixture.env.RegisterDelayedCallback(func() {
		var all []runs.Decision
		for _, by := range []string{"two", "three"} {
			for _, id := range []string{"1", "2"} {
				all = append(all, runs.Decision{CallID: id, Kind: runs.DecisionApprove, Digest: by, By: by, ArgsDigest: "d"})
			}
		}
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: all}, make(chan any, 1))
	}, 90*time.Minute)
	fixture.env.ExecuteWorkflow(runs.TypeRun, in)
	var next runs.Input
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeRun, &next)
	end := fixture.finished[0]
	mustEqual(t, "end of the run: outcome", end.Outcome, runs.OutcomeInterrupt)
	mustEqual(t, "end of the run: number of suspended children", len(end.Interrupts.Suspended), 2)
	mustEqual(t, "end of the run: number of interrupts", len(end.Interrupts.Items), 2)
	votes := 0
	for _, item := range next.Resume.Items {
		if item.Decision == nil {
			t.Fatal("decision of the call = nil, want a value")
		}
		votes += len(item.Votes)
	}
	if votes != 2 {
		t.Errorf("votes before the last: got %d, want 2", votes)
	}
	opened, numbers, since := 0, map[string]bool{}, map[string]time.Time{}
	for _, n := range fixture.notifications {
		for _, item := range n.Items {
			name := fmt.Sprint(item.ID, n.Event, n.Number)
			if numbers[name] {
				t.Errorf("notification %s was sent twice, want once", name)
			}
			numbers[name] = true
			since[item.ID] = item.Since(n.OpenedAt)
		}
		if n.Event == runs.EventOpened {
			opened += len(n.Items)
		}
	}
	for _, item := range next.Resume.Items { // the inbox, reminders and escalations use this time
		if at := item.Since(next.Resume.OpenedAt); !at.Equal(since[item.ID]) {
			t.Errorf("%s is open since %s after the end of the run, want %s", item.ID, at, since[item.ID])
		}
	}
	if opened != 2 {
		t.Errorf("opened notifications: got %d, want 2", opened)
	}
}

// TestInterruptAnnouncedDuringDecision: a branch raises an interrupt, and at the same moment
// another branch receives its decision and continues. The interrupt is announced then, not after
// that other branch has ended.
func TestInterruptAnnouncedDuringDecision(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 4)
	busy, second, third, announced, once := false, make(chan struct{}), make(chan struct{}), make(chan struct{}), sync.Once{}
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		switch {
		case in.Child == nil || in.Position.Event == nil:
		case in.Child.Index == 0: // it has nothing to do
			return runs.AdvanceResult{TreePosition: in.Position.TreePosition}, nil
		case in.Child.Index == 1 && in.Position.Event.Kind != pipeline.EventBegun && !busy:
			busy = true
			return runs.AdvanceResult{TreePosition: in.Position.TreePosition, Sleep: time.Hour}, nil
		case in.Child.Index == 2 && in.Position.Event.Kind == pipeline.EventBegun:
			<-second
		case in.Child.Index == 3 && in.Position.Event.Kind == pipeline.EventBegun:
			<-third
		}
		return fixture.advanceOnce(in)
	}
	fixture.env.SetOnLocalActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, _ error) {
		if strings.Contains(info.WorkflowExecution.ID, "/all/3") { // the branch's interrupt is sent now, before the second callback
			fixture.env.RegisterDelayedCallback(func() { fixture.env.RegisterDelayedCallback(func() { once.Do(func() { close(announced) }) }, 0) }, 0)
		}
	})
	fixture.onAnnounce = func(in runs.AnnounceInterrupts) {
		switch in.Interrupts.Items[0].ID {
		case "1":
			close(second)
			return
		case "3":
			return
		}
		r := fixture.decide(0, "1")()
		mustEqual(t, "number of results", len(r), 1)
		wantEqual(t, "error of the decision", r[0].Error, "")
		close(third)
		<-announced
	}
	fixture.env.ExecuteWorkflow(runs.TypeRun, branchInput())
	if last := fixture.announced[len(fixture.announced)-1]; last != "3 0s" || len(fixture.announced) != 3 {
		t.Errorf("announced interrupts: got %q, want 3 with the last at 0s", fixture.announced)
	}
}

// TestInterruptAfterDeadlineExpires: an interrupt that a branch raises after its step's
// deadline expires at once.
func TestInterruptAfterDeadlineExpires(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 2)
	fixture.branches.Deadline = fixture.env.Now().Add(200 * time.Millisecond)
	late := make(chan struct{})
	var answer runs.ModelAnswer
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
		fixture.env.RegisterDelayedCallback(func() { close(late) }, 400*time.Millisecond)
		<-late
		return answer, nil
	}
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		switch {
		case in.Child == nil || in.Position.Event == nil:
		case in.Child.Index == 0: // it has nothing to do
			return runs.AdvanceResult{TreePosition: in.Position.TreePosition}, nil
		case in.Position.Event.Kind == pipeline.EventBegun:
			next, err := fixture.advanceOnce(in)
			answer, next.Answer, next.Active.CallID, next.Active.Deadline = *next.Answer, nil, "", fixture.branches.Deadline
			return next, err
		}
		return fixture.advanceOnce(in)
	}
	_, last := fixture.run(branchInput())
	wantEqual(t, "code of the run", last.Code, "timeout")
	mustEqual(t, "number of calls", len(fixture.calls), 1)
	if !strings.HasPrefix(fixture.calls[0], "1 not made") {
		t.Errorf("first call = %q, want prefix %q", fixture.calls[0], "1 not made")
	}
}

// TestToolResultWhileBranchesSuspend: a tool result that arrives while the branches are suspended
// belongs to the interrupts that the run ends with.
func TestToolResultWhileBranchesSuspend(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 3)
	fixture.asksClient = true
	fixture.env.RegisterActivityWithOptions(func(context.Context, runs.StoreResult, runs.ToolResult) (runs.Decision, error) {
		return runs.Decision{CallID: "1", Kind: runs.DecisionToolResult, Proposal: 80, Digest: "kept"}, nil
	}, activity.RegisterOptions{Name: runs.ActivityStoreToolResult})
	var once sync.Once
	come := make(chan struct{})
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		switch {
		case in.Child != nil && in.Child.Index == 0: // it has nothing to do
			return runs.AdvanceResult{TreePosition: in.Position.TreePosition}, nil
		case len(in.Suspended) > 0 && in.Child.Index == 2:
			<-come // until the other branch has ended
		}
		return fixture.advanceOnce(in)
	}
	fixture.env.SetOnChildWorkflowCompletedListener(func(info *workflow.Info, _ converter.EncodedValue, _ error) {
		if strings.HasSuffix(info.WorkflowExecution.ID, "/all/1") {
			once.Do(func() {
				fixture.env.RegisterDelayedCallback(func() {
					fixture.env.SignalWorkflow(runs.SignalToolResult, runs.ToolResult{CallID: "1", Content: []byte(`"blue"`)})
					fixture.env.RegisterDelayedCallback(func() { close(come) }, 0)
				}, 0)
			})
		}
	})
	in := branchInput()
	in.OnMissingResult = runs.OpenAbandon
	fixture.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	for _, item := range parked.Interrupts.Items {
		wantEqual(t, fmt.Sprintf("parked call %s has a decision", item.ID), item.Decision != nil, item.ID == "1")
	}
	if len(parked.Interrupts.Items) != 2 {
		t.Errorf("parked calls: got %d, want 2", len(parked.Interrupts.Items))
	}
}

// TestRunListsOpenCallsOfBranches: a run whose branches wait while another branch works lists
// their undecided calls.
func TestRunListsOpenCallsOfBranches(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 3)
	var open [][]string
	fixture.listOpenCalls(time.Minute, &open)
	fixture.decide(2*time.Minute, "1")
	fixture.listOpenCalls(3*time.Minute, &open)
	fixture.decide(4*time.Minute, "2")
	fixture.run(branchInput())
	for _, calls := range open {
		slices.Sort(calls)
	}
	if want := [][]string{{"1", "2"}, {"2"}}; !slices.EqualFunc(open, want, slices.Equal) {
		t.Errorf("open calls: got %q, want %q", open, want)
	}
}

// TestInterruptsOfBranchesAreBounded: a run does not end with more interrupts than its successor's
// input holds. It stays open until enough of them are decided.
func TestInterruptsOfBranchesAreBounded(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 30)
	ids := make([]string, 29)
	for i := range ids {
		ids[i] = fmt.Sprint(i + 1)
	}
	first := fixture.decide(90*time.Minute, ids[:14]...)
	second := fixture.decide(100*time.Minute, ids[14:26]...)
	fixture.env.ExecuteWorkflow(runs.TypeRun, branchInput())
	var parked runs.ParkedInput
	decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeParked, &parked)
	for _, r := range append(first(), second()...) {
		wantEqual(t, "result of a decision: error", r.Error, "")
	}
	mustEqual(t, "number of calls", len(fixture.calls), 26)
	mustEqual(t, "number of ends", len(fixture.finished), 1)
	wantEqual(t, "outcome of the run", fixture.finished[0].Outcome, runs.OutcomeInterrupt)
	wantEqual(t, "number of parked interrupts", len(parked.Interrupts.Items), 3)
}

// TestInterruptsOfBranchesExpire: interrupts of branches expire while another branch works.
func TestInterruptsOfBranchesExpire(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 2)
	fixture.approval.Expires, fixture.approval.OnExpiry = 10*time.Minute, runs.OnExpiryFail
	fixture.run(branchInput())
	if want := []pipeline.BranchFailure{{Index: 0, Failure: pipeline.Failure{Code: "cancelled"}}, {Index: 1, Failure: pipeline.Failure{Code: runs.CodeApprovalExpired, Message: "the interrupt expired without a decision"}}}; !slices.Equal(fixture.branchFailures, want) {
		t.Errorf("failures of branches: got %+v, want %+v", fixture.branchFailures, want)
	}
}

// TestStepDeadlineEndsInterruptsOfBranches: a step's deadline ends the interrupts of its branches.
func TestStepDeadlineEndsInterruptsOfBranches(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 3)
	fixture.branches.Deadline = fixture.env.Now().Add(20 * time.Minute)
	early := fixture.decide(10*time.Minute, "1")
	_, last := fixture.run(branchInput())
	if last.Code != "timeout" {
		t.Errorf("end of the run: got %+v, want a timeout", last)
	}
	r := early()[0]
	wantEqual(t, "decision before the deadline: error", r.Error, "")
	if len(fixture.calls) != 1 {
		t.Errorf("calls: got %q, want 1", fixture.calls)
	}
}

// TestSuspendingBranchIsCancelled: a step's deadline passes while its branches end with
// their interrupts. A branch that is cancelled meanwhile reports no usage. The next step reads the
// branch's usage from the log.
func TestSuspendingBranchIsCancelled(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 3)
	fixture.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the activity of the branch does not end before it
	fixture.branches.Deadline = fixture.env.Now().Add(time.Hour + 100*time.Millisecond) // branch 0 is busy for an hour
	cancelled := make(chan struct{})
	fixture.env.SetOnChildWorkflowCanceledListener(func(*workflow.Info) { close(cancelled) })
	var after []runs.AdvanceInput
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		switch {
		case len(in.Suspended) > 0 && in.Child.Index == 1:
			<-time.After(200 * time.Millisecond)
		case len(in.Suspended) > 0:
			<-cancelled
			return runs.AdvanceResult{}, retryAfter(runs.ErrorLogUnavailable, 0)
		case in.Child == nil && in.Position.Branches != nil:
			after = append(after, in)
		}
		return fixture.advanceOnce(in)
	}
	fixture.run(branchInput())
	want := []runs.Lane{{Index: 2, After: 11, Subagent: true, Branch: true}}
	if len(after) != 1 || !slices.Equal(after[0].Unfinished, want) {
		t.Errorf("the advances after the step are %+v, want one that takes over the lanes %+v", after, want)
	}
}

// TestDecisionsOfEndedBranchesAreRecorded: decisions about calls of a branch that makes none of
// them are in the log, whatever ended the branch.
func TestDecisionsOfEndedBranchesAreRecorded(t *testing.T) {
	t.Parallel()
	cancels := func(fixture *branchFixture) {
		fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
	}
	for name, tt := range map[string]struct {
		prepare     func(fixture *branchFixture)
		endRun      func(fixture *branchFixture)
		endAfter    time.Duration
		wantOutcome runs.Outcome
		wantCalls   []string
	}{
		"cancel": {
			endRun: cancels, endAfter: 20 * time.Minute, wantOutcome: runs.OutcomeCancelled,
			wantCalls: []string{"1 not made, approve 20m0s", "2+ not made, approve 20m0s"},
		},
		"Temporal's cancel": {
			endRun: func(fixture *branchFixture) { fixture.env.CancelWorkflow() }, endAfter: 20 * time.Minute, wantOutcome: runs.OutcomeCancelled,
			wantCalls: []string{"1 not made, approve 20m0s", "2+ not made, approve 20m0s"},
		},
		"failure of a sibling": {
			prepare: func(fixture *branchFixture) { fixture.busyBranchFails = true }, wantOutcome: runs.OutcomeSuccess,
			wantCalls: []string{"1 not made, approve 1h0m0s", "2+ not made, approve 1h0m0s"},
		},
		"end of the step's time": {
			prepare: func(fixture *branchFixture) { fixture.branches.Deadline = fixture.env.Now().Add(30 * time.Minute) }, wantOutcome: runs.OutcomeError,
			wantCalls: []string{"1 not made, approve 30m0s", "2+ not made, approve 30m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupBranches(t, 3)
			fixture.secondCall = true
			early := fixture.decide(10*time.Minute, "1", "2+")
			if tt.prepare != nil {
				tt.prepare(fixture)
			}
			if tt.endRun != nil {
				fixture.env.RegisterDelayedCallback(func() { tt.endRun(fixture) }, tt.endAfter)
			}
			result, _ := fixture.run(branchInput())
			for _, r := range early() {
				wantEqual(t, "decision before the end: error", r.Error, "")
			}
			if result.Outcome != tt.wantOutcome {
				t.Errorf("got %+v, want the outcome %s", result, tt.wantOutcome)
			}
			if slices.Sort(fixture.calls); !slices.Equal(fixture.calls, tt.wantCalls) {
				t.Errorf("calls: got %q, want %q", fixture.calls, tt.wantCalls)
			}
			var cancelled []string
			for _, n := range fixture.notifications {
				for _, item := range n.Items {
					if n.Event == runs.EventDecided && item.Decision.Kind == runs.DecisionCancel {
						cancelled = append(cancelled, item.ID)
					}
				}
			}
			if slices.Sort(cancelled); !slices.Equal(cancelled, []string{"1+", "2"}) {
				t.Errorf("cancelled notifications: got the calls %q, want 1+ and 2", cancelled)
			}
		})
	}
}

// TestDecisionWhileBranchesSuspend: a decision that arrives while branches are suspended gets the
// result that the next run has. A cancel at that time applies to the next run: its branches begin
// again, cancelled, and compensate.
func TestDecisionWhileBranchesSuspend(t *testing.T) {
	t.Parallel()
	for name, cancelled := range map[string]bool{"the run ends with the interrupts": false, "the run is cancelled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupBranches(t, 2)
			answered := make(chan any, 1)
			fixture.onSuspendedAdvance = func() {
				fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{approvalOf("1")}}, answered)
				if cancelled {
					fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
				}
			}
			fixture.env.ExecuteWorkflow(runs.TypeRun, branchInput())
			var next runs.Input
			decodeContinuation(t, fixture.env.GetWorkflowError(), runs.TypeRun, &next)
			wantEqual(t, "end of the run: outcome", fixture.finished[0].Outcome, runs.OutcomeInterrupt)
			wantEqual(t, "number of suspended children", len(next.Resume.Suspended), 1)
			decision := next.Resume.Items[0].Decision
			r := (<-answered).(runs.DecideResult).Results[0]
			if decision == nil {
				t.Fatal("decision in the next run = nil, want one")
			}
			wantEqual(t, "the decision is refused", r.Error != "", cancelled)
			wantEqual(t, "the next run's decision is a cancel", decision.Kind == runs.DecisionCancel, cancelled)
			notified := slices.ContainsFunc(fixture.notifications, func(n runs.Notification) bool {
				return n.Event == runs.EventDecided && n.Items[0].Decision.Kind == runs.DecisionCancel
			})
			wantEqual(t, "a notification of a cancel was sent", notified, false)
			wantEqual(t, "next run: is cancelled", next.Cancelled, cancelled)
			wantEqual(t, "number of pending notifications", len(next.Resume.Pending), 1)
		})
	}
}

// TestCancelRestartsSuspendedBranches: suspended branches begin again even if the next run is
// cancelled first. They compensate for their work.
func TestCancelRestartsSuspendedBranches(t *testing.T) {
	t.Parallel()
	first := setupBranches(t, 3)
	first.decide(90*time.Minute, "1", "2")
	in := branchInput()
	in.ParkAfter = 3 * time.Hour
	first.env.ExecuteWorkflow(runs.TypeRun, in)
	var next runs.Input
	decodeContinuation(t, first.env.GetWorkflowError(), runs.TypeRun, &next)
	fixture, restarted := setupBranches(t, 3), 0
	fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		switch {
		case in.Resumes && in.Child == nil:
			fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: next.Run.ID})
		case in.Resumes:
			fixture.mu.Lock()
			restarted++
			fixture.mu.Unlock()
		}
		return fixture.advanceOnce(in)
	}
	if result, _ := fixture.run(next); result.Outcome != runs.OutcomeCancelled || restarted != 2 {
		t.Errorf("got %+v with %d branches begun again, want cancelled with 2", result, restarted)
	}
	for _, made := range fixture.calls {
		if !strings.Contains(made, "not made") {
			t.Errorf("call made after the cancel = %q, want text with %q", made, "not made")
		}
	}
}

// TestNestedBranchesSuspendWithinPayload: nested branches suspend only if the run can end with all
// of their interrupts, whatever the size at which the payload is full. Decisions that arrive
// meanwhile count.
func TestNestedBranchesSuspendWithinPayload(t *testing.T) {
	t.Parallel()
	for size := 1000; size < 1120; size += 4 {
		fixture := setupBranches(t, 3)
		fixture.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
			nests := in.Child != nil && len(in.Child.Lanes) == 1 && in.Child.Index > 0
			begins := in.Position.Event != nil && in.Position.Event.Kind == pipeline.EventBegun
			switch {
			case nests && begins && len(in.Suspended) == 0:
				return runs.AdvanceResult{TreePosition: in.Position.TreePosition, Branches: &runs.Branches{Path: fmt.Sprintf("pair%d", in.Child.Index), Count: 2, Concurrency: 2}}, nil
			case nests:
				return runs.AdvanceResult{TreePosition: in.Position.TreePosition}, nil
			}
			next, err := fixture.advanceOnce(in)
			if next.Active != nil {
				next.Active.CallID, next.Answer.Calls[0].ID = in.Child.BranchPath, in.Child.BranchPath
				next.Active.PipelineStep.Path = strings.Repeat("s", size)
			}
			return next, err
		}
		fixture.decide(90*time.Minute, "pair1/1", "pair2/1")
		fixture.env.ExecuteWorkflow(runs.TypeRun, branchInput())
		if fixture.finished[0].Outcome == runs.OutcomeError {
			t.Errorf("with paths of %d bytes: outcome = %q (%s: %s), want no error", size, fixture.finished[0].Outcome, fixture.finished[0].Code, fixture.finished[0].Message)
		}
	}
}

// TestHeldRunWaitsForBranches: a held run waits for its branches. The wait does not count against
// its deadline.
func TestHeldRunWaitsForBranches(t *testing.T) {
	t.Parallel()
	fixture := setupBranches(t, 3)
	fixture.decide(30*time.Hour, "1", "2")
	in := branchInput()
	in.Hold = true
	result, _ := fixture.run(in)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of ends", len(fixture.finished), 1)
	wantEqual(t, "number of calls", len(fixture.calls), 2)
}
