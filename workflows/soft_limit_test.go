package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// limitFixture is a fixture whose model never ends and uses 60 tokens a turn.
type limitFixture struct {
	*heldFixture
	limitInterrupts []runs.LimitInterrupt
}

// setupLimits returns a fixture whose turns use 60 tokens each.
func setupLimits(t *testing.T) *limitFixture {
	t.Helper()
	fixture := &limitFixture{heldFixture: setupHeld(t)}
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(in.After+1, "work")
		n := int64(60)
		a.Usage = runs.Usage{Provider: "p", Model: "m", Total: &n}
		return a, nil
	}
	fixture.registerLimitInterrupt()
	return fixture
}

// registerLimitInterrupt registers the activity that raises limit interrupts.
func (f *limitFixture) registerLimitInterrupt() {
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.LimitInterrupt) (runs.ModelAnswer, error) {
		f.limitInterrupts = append(f.limitInterrupts, in)
		a := modelAnswer(in.After+1, "beyond")
		a.MessageID, a.InterruptCount = "question", 1
		a.Calls[0].Tool, a.Calls[0].Approval = "approve", &runs.Approval{ArgsDigest: "figures", Expires: time.Hour}
		return a, nil
	}, activity.RegisterOptions{Name: runs.ActivityLimitInterrupt})
}

// exceededLimits returns the exceeded limits of the interrupts.
func (f *limitFixture) exceededLimits() (all []runs.ExceededLimit) {
	for _, a := range f.limitInterrupts {
		all = append(all, a.Exceeded)
	}
	return all
}

// inputWithSoftLimits returns an input with soft limits.
func inputWithSoftLimits(soft runs.SoftLimits) runs.Input {
	in := input
	in.Limits = runs.Limits{Turns: 50, Tokens: 250, Duration: time.Hour, ParallelTools: 4, Soft: &soft}
	return in
}

var (
	limitApproval  = runs.Decision{CallID: "beyond", Kind: runs.DecisionApprove, Digest: "yes", ArgsDigest: "figures"}
	limitRejection = runs.Decision{CallID: "beyond", Kind: runs.DecisionReject, Digest: "no", Proposal: 71}
)

// TestSoftLimitInterruptsRun: a run that passes a soft limit ends with an interrupt. The next run
// counts the earlier usage, may use as much again, and asks again. The hard limit ends it.
func TestSoftLimitInterruptsRun(t *testing.T) {
	t.Parallel()
	in := inputWithSoftLimits(runs.SoftLimits{Tokens: 100})
	var calls, turns int
	for i, want := range []runs.ExceededLimit{
		{Code: runs.CodeLimitTokens, Used: 120, Allowed: 220},
		{Code: runs.CodeLimitTokens, Used: 240, Allowed: 250},
	} {
		fixture := setupLimits(t)
		fixture.decide(time.Minute, limitApproval)
		in = fixture.runUntilContinued(in)
		end := fixture.finished[0]
		mustEqual(t, fmt.Sprintf("run %d: outcome", i), end.Outcome, runs.OutcomeInterrupt)
		mustEqual(t, fmt.Sprintf("run %d: number of interrupts", i), len(end.Interrupts.Items), 1)
		mustEqual(t, fmt.Sprintf("run %d: exceeded limit", i), end.Interrupts.Exceeded, &want)
		mustEqual(t, fmt.Sprintf("run %d: exceeded limits", i), fixture.exceededLimits(), []runs.ExceededLimit{want})
		wantEqual(t, "interrupts: agent", end.Interrupts.Agent, "a")
		wantEqual(t, "interrupts: step", end.Interrupts.Step, "~limit")
		wantEqual(t, "interrupts: message ID", end.Interrupts.MessageID, "question")
		wantEqual(t, "limit interrupt: ID", fixture.limitInterrupts[0].ID, "3/limit")
		wantEqual(t, "limit interrupt: name", fixture.limitInterrupts[0].Name, "limit")
		wantEqual(t, "limit interrupt: closed step", fixture.limitInterrupts[0].Closes, "tools")
		if fixture.limitInterrupts[0].PipelineStep == nil {
			t.Fatal("limit interrupt: pipeline step = nil, want a value")
		}
		wantEqual(t, "limit interrupt: scope", fixture.limitInterrupts[0].PipelineStep.Scope, runs.ScopeLimit)
		wantEqual(t, "limit interrupt: beginning", fixture.limitInterrupts[0].Beginning, runs.Beginning{})
		turns += len(fixture.modelCalls)
		if got := in.Resume.Spent; got == nil || got.Turns != turns || got.Tokens != want.Used {
			t.Errorf("usage in the next run: got %+v, want %d turns and %d tokens", got, turns, want.Used)
		}
		if i > 0 { // the interrupt of the previous run
			wantEqual(t, "call of the interrupt: call ID", fixture.calls[0].CallID, "beyond")
			if fixture.calls[0].PipelineStep == nil {
				t.Fatal("call of the interrupt: pipeline step = nil, want a value")
			}
			mustEqual(t, "call of the interrupt: is inline", fixture.calls[0].PipelineStep.Inline, true)
			wantEqual(t, "call of the interrupt: name", fixture.calls[0].Name, "limit")
			if fixture.calls[0].Decision == nil {
				t.Fatal("call of the interrupt: Decision = nil, want a value")
			}
			wantEqual(t, "step that the second call closes", fixture.calls[1].Closes, "model")
			wantEqual(t, "next turn: closed step", fixture.modelCalls[0].Closes, "limit")
			wantEqual(t, "next turn: ID", fixture.modelCalls[0].ID, "1/model")
		}
		calls += len(fixture.calls)
	}
	last := setupLimits(t)
	result, _ := last.run(in)
	wantEqual(t, "code", result.Code, runs.CodeLimitTokens)
	wantEqual(t, "number of model calls", len(last.modelCalls), 1)
	wantEqual(t, "number of limit interrupts", len(last.limitInterrupts), 0)
	if calls != 5 {
		t.Errorf("got %d calls, want 4 of the model and one of the interrupt", calls)
	}
}

// TestSubagentExceedsHardLimit: a subagent's usage counts when the subagent ends. If it passes
// the hard limit, the run ends without another model call and without an interrupt.
func TestSubagentExceedsHardLimit(t *testing.T) {
	t.Parallel()
	for name, soft := range map[string]*runs.SoftLimits{"without a soft limit": nil, "with one": {Tokens: 100}} {
		fixture := setupLimits(t)
		fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
			n := int64(200)
			return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: in.After + 2, Usage: []runs.Usage{{Provider: "p", Model: "m", Total: &n}}}, nil
		}
		in := inputWithSoftLimits(runs.SoftLimits{})
		in.Limits.Soft = soft
		result, _ := fixture.run(in)
		wantEqual(t, name+": code", result.Code, runs.CodeLimitTokens)
		wantEqual(t, name+": number of model calls", len(fixture.modelCalls), 1)
		wantEqual(t, name+": number of limit interrupts", len(fixture.limitInterrupts), 0)
	}
}

// TestRejectedSoftLimitEndsRun: a rejected or expired limit interrupt ends the run with the code of
// the limit.
func TestRejectedSoftLimitEndsRun(t *testing.T) {
	t.Parallel()
	for name, decisions := range map[string][]runs.Decision{"rejected": {limitRejection}, "expired": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setupLimits(t)
			fixture.decide(time.Minute, decisions...)
			in := inputWithSoftLimits(runs.SoftLimits{Turns: 1})
			in.ParkAfter = 2 * time.Hour
			next := fixture.runUntilContinued(in)
			nextFixture := setupLimits(t)
			result, _ := nextFixture.run(next)
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeError)
			wantEqual(t, "code", result.Code, runs.CodeLimitTurns)
			wantEqual(t, "number of model calls", len(nextFixture.modelCalls), 0)
			wantEqual(t, "number of calls", len(nextFixture.calls), 1)
		})
	}
}

// TestSoftLimitOfHeldRun: a held run raises the interrupt within the run. The interrupt's step has
// a turn number, but does not count as a turn.
func TestSoftLimitOfHeldRun(t *testing.T) {
	t.Parallel()
	fixture := setupLimits(t)
	fixture.decide(time.Minute, limitApproval)
	in := inputWithSoftLimits(runs.SoftLimits{Turns: 2})
	in.Hold, in.Limits.Turns = true, 3
	result, _ := fixture.run(in)
	mustEqual(t, "code", result.Code, runs.CodeLimitTurns)
	mustEqual(t, "number of model calls", len(fixture.modelCalls), 3)
	mustEqual(t, "number of limit interrupts", len(fixture.limitInterrupts), 1)
	wantEqual(t, "exceeded limit", fixture.limitInterrupts[0].Exceeded, runs.ExceededLimit{Code: runs.CodeLimitTurns, Used: 2, Allowed: 3})
	var steps []string
	for _, m := range fixture.modelCalls {
		steps = append(steps, m.ID)
	}
	want := []string{"1/model", "2/model", "4/model"}
	mustEqual(t, "step IDs of the turns", steps, want)
	wantEqual(t, "ID of the announcement", fixture.announced[0].ID, "3/hold")
	if fixture.announced[0].Interrupts.Exceeded == nil {
		t.Fatal("exceeded limit of the announcement = nil, want a value")
	}
	wantEqual(t, "call of the interrupt: ID", fixture.calls[2].ID, "3/held/0")
	wantEqual(t, "call of the interrupt: name", fixture.calls[2].Name, "limit")
	if fixture.calls[2].PipelineStep == nil {
		t.Fatal("call of the interrupt: pipeline step = nil, want a value")
	}

	fixture = setupLimits(t)
	fixture.decide(time.Minute, limitRejection)
	result, _ = fixture.run(in)
	wantEqual(t, "code after the rejection", result.Code, runs.CodeLimitTurns)
	wantEqual(t, "number of model calls", len(fixture.modelCalls), 2)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeError)
}

// TestEditedSoftLimit: an edit of the approval sets the new limit.
func TestEditedSoftLimit(t *testing.T) {
	t.Parallel()
	fixture := setupLimits(t)
	edits := runs.Decision{CallID: "beyond", Kind: runs.DecisionEdit, Digest: "edit", ArgsDigest: "other figures", Allowed: 170, Proposal: 71}
	fixture.decide(time.Minute, edits)
	in := fixture.runUntilContinued(inputWithSoftLimits(runs.SoftLimits{Tokens: 100}))
	nextFixture := setupLimits(t)
	nextFixture.decide(time.Minute, limitRejection)
	in = nextFixture.runUntilContinued(in)
	want := runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 180, Allowed: 250}
	wantEqual(t, fmt.Sprintf("after %d turns: number of model calls", len(nextFixture.modelCalls)), len(nextFixture.modelCalls), 1)
	wantEqual(t, fmt.Sprintf("after %d turns: exceeded limits", len(nextFixture.modelCalls)), nextFixture.exceededLimits(), []runs.ExceededLimit{want})
	if nextFixture.calls[0].Decision == nil {
		t.Fatalf("after %d turns: decision of the first call = nil, want a value", len(nextFixture.modelCalls))
	}
	wantEqual(t, fmt.Sprintf("after %d turns: arguments of the first call's decision", len(nextFixture.modelCalls)), nextFixture.calls[0].Decision.ArgsDigest, "other figures")
	wantEqual(t, fmt.Sprintf("after %d turns: first call opens with edits", len(nextFixture.modelCalls)), nextFixture.calls[0].Beginning.Edits, true)
	if got := in.Resume.Spent.Allowed.Tokens; got != 170 {
		t.Errorf("allowed tokens: got %d, want 170", got)
	}
}

// TestSoftLimitSurvivesContinueAsNew: usage and allowances survive parking and continue-as-new.
func TestSoftLimitSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	f := setupLimits(t)
	in := inputWithSoftLimits(runs.SoftLimits{Tokens: 100})
	in.Hold, in.ParkAfter = true, time.Minute
	f.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	decodeContinuation(t, f.env.GetWorkflowError(), runs.TypeParked, &parked)
	next := runParked(t, parked, time.Second, func(execution *fixture) {
		execution.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{limitApproval}}, make(chan any, 1))
	})
	nextFixture := setupLimits(t)
	nextFixture.env.SetContinueAsNewSuggested(true)
	next = nextFixture.runUntilContinued(next)
	mustEqual(t, "number of model calls", len(nextFixture.modelCalls), 0)
	mustEqual(t, "usage of the next execution: turns", next.Progress.Spent.Turns, 2)
	mustEqual(t, "usage of the next execution: allowed tokens", next.Progress.Spent.Allowed.Tokens, 220)
	last := setupLimits(t)
	last.decide(time.Second, limitRejection)
	result, _ := last.run(next)
	wantEqual(t, "code", result.Code, runs.CodeLimitTokens)
	wantEqual(t, "number of model calls", len(last.modelCalls), 2)
	wantEqual(t, "exceeded limits", last.exceededLimits(), []runs.ExceededLimit{{Code: runs.CodeLimitTokens, Used: 240, Allowed: 250}})
}

// TestEachSoftLimitInterrupts: each soft limit raises an interrupt, with figures in the limit's
// unit.
func TestEachSoftLimitInterrupts(t *testing.T) {
	t.Parallel()
	for code, soft := range map[string]runs.SoftLimits{
		runs.CodeLimitTokens: {Tokens: 60}, runs.CodeLimitCost: {Cost: 700}, runs.CodeLimitTurns: {Turns: 1}, runs.CodeLimitDuration: {Duration: time.Minute},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			fixture := setupLimits(t)
			spends := fixture.model
			fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
				a, err := spends(in)
				cost := int64(700)
				a.Usage.Cost = &cost
				return a, err
			}
			fixture.decide(time.Minute, limitRejection)
			in := inputWithSoftLimits(soft)
			in.Progress = &runs.Progress{Execution: "e", Turn: 1, LaneSequences: runs.LaneSequences{Main: 1}, Budget: runs.Budget{Deadline: fixture.env.Now().Add(time.Hour)}}
			want := runs.ExceededLimit{Code: code, Used: 120, Allowed: 180} // reaching the limit does not pass it
			switch code {
			case runs.CodeLimitCost:
				want.Used, want.Allowed = 1400, 2100
			case runs.CodeLimitTurns:
				want.Used, want.Allowed = 1, 2
			case runs.CodeLimitDuration:
				in.Progress.Deadline = fixture.env.Now().Add(time.Hour - 2*time.Minute)
			}
			in.Hold = true
			result, _ := fixture.run(in)
			mustEqual(t, "code", result.Code, code)
			mustEqual(t, "number of limit interrupts", len(fixture.limitInterrupts), 1)
			got := fixture.limitInterrupts[0].Exceeded
			if code == runs.CodeLimitDuration { // the clock advances meanwhile
				over := time.Duration(got.Used) - 2*time.Minute
				if over < 0 {
					t.Errorf("time over the limit = %v, want at least %v", over, 0)
				}
				if over > time.Minute {
					t.Errorf("time over the limit = %v, want at most %v", over, time.Minute)
				}
				wantEqual(t, "allowance beyond the usage", got.Allowed-got.Used, int64(time.Minute))
				return
			}
			if got != want {
				t.Errorf("exceeded limit: got %+v, want %+v", got, want)
			}
			if priced := code == runs.CodeLimitCost; fixture.modelCalls[0].Priced != priced {
				t.Errorf("model calls require prices: got %t, want %t", fixture.modelCalls[0].Priced, priced)
			}
		})
	}
}

// TestSoftLimitOfProgram: after an approval a program continues in the next run and keeps its
// counts. A rejection is the failure of its step.
func TestSoftLimitOfProgram(t *testing.T) {
	t.Parallel()
	var failed *workflows.StepError
	var done int
	base := setupPrograms(t, workflows.Programs{"p": func(ctx workflow.Context, a *workflows.Agent) error {
		for ; ; done++ {
			if err := a.Do(ctx, agents.Step{Name: "work", Agent: &agents.AgentStep{}}); err != nil {
				errors.As(err, &failed)
				return err
			}
		}
	}})
	fixture := &limitFixture{heldFixture: &heldFixture{fixture: base}}
	fixture.registerLimitInterrupt()
	var seq uint64
	base.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		seq += 10
		next := runs.AdvanceResult{Seq: seq, TreePosition: in.Position.TreePosition}
		if !in.Resumes && in.Position.Event.Kind == pipeline.EventBegun {
			next.Active = &runs.ActiveStep{AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: input.Limits}, PipelineStep: runs.StepRef{Path: "work", Name: "work", Inline: true}}
		} else if !in.Resumes && in.Position.Event.Failure != nil {
			next.Failed = in.Position.Event.Failure
		}
		return next, nil
	}
	base.model = func(in runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(in.After + 1), nil }
	base.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Seq: in.After + 2, Opened: in.After + 1}, nil
	}
	fixture.decide(time.Minute, limitApproval)
	fixture.decide(2*time.Minute, limitRejection)
	in := inputWithSoftLimits(runs.SoftLimits{Turns: 2})
	in.Program = "p"
	result, _ := base.run(in)
	wantEqual(t, "code", result.Code, runs.CodeLimitTurns)
	wantEqual(t, "steps", done, 4)
	if failed == nil {
		t.Fatal("end of the last run = nil, want a value")
	}
	wantEqual(t, "code of the last run", failed.Code, result.Code)
	want := []runs.ExceededLimit{{Code: runs.CodeLimitTurns, Used: 2, Allowed: 4}, {Code: runs.CodeLimitTurns, Used: 4, Allowed: 6}}
	wantEqual(t, "exceeded limits", fixture.exceededLimits(), want)
	wantEqual(t, "number of ends", len(base.finished), 3)
}

// TestUsageBelongsToInput: usage counts in the run that brings results of client tool
// calls, and not in the run of a new input.
func TestUsageBelongsToInput(t *testing.T) {
	t.Parallel()
	spent := &runs.PriorUsage{Turns: 2, Tokens: 120, Duration: 10 * time.Minute}
	for kind, wantAtOnce := range map[runs.DecisionKind]bool{runs.DecisionToolResult: true, runs.DecisionAbandon: false} {
		fixture := setupLimits(t)
		fixture.decide(time.Minute, limitApproval)
		in := inputWithSoftLimits(runs.SoftLimits{Tokens: 100})
		in.Hold, in.Limits.Tokens = true, 130
		waiting := runs.Interrupt{Call: runs.Call{ID: "theirs", Client: true}, Decision: &runs.Decision{CallID: "theirs", Kind: kind}}
		in.Resume = &runs.Interrupts{RunID: "r0", MessageID: "m0", Items: []runs.Interrupt{waiting}, Spent: spent}
		result, _ := fixture.run(in)
		if len(fixture.limitInterrupts) != 1 || result.Code != runs.CodeLimitTokens {
			t.Errorf("%s: code = %q after the interrupts %+v, want %q after one", kind, result.Code, fixture.exceededLimits(), runs.CodeLimitTokens)
			continue
		}
		first := fixture.limitInterrupts[0]
		hasOpen := first.Beginning != (runs.Beginning{})
		wantEqual(t, fmt.Sprintf("%s: the first interrupt opens the run", kind), hasOpen, wantAtOnce)
		wantEqual(t, fmt.Sprintf("%s: used tokens of the first interrupt", kind), first.Exceeded.Used, 120)
		wantEqual(t, fmt.Sprintf("%s: only one model call", kind), len(fixture.modelCalls) == 1, wantAtOnce)
	}
}

// TestSoftLimitAfterLostTask: a workflow task was lost after it had called the model, and the soft limit of
// time is passed before Temporal repeats it. Approvers are asked after that turn: the question follows its
// records.
func TestSoftLimitAfterLostTask(t *testing.T) {
	t.Parallel()
	f := setupLimits(t)
	const lost = 11 // the record of the answer of the lost task
	f.isLogAhead = func(in runs.LogCheck) bool { return in.After < lost }
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(lost, "work"), nil }
	f.decide(time.Second, limitRejection)
	in := inputWithSoftLimits(runs.SoftLimits{Duration: time.Minute})
	in.Hold = true
	theirs := runs.Interrupt{Call: runs.Call{ID: "theirs", Client: true}, Decision: &runs.Decision{CallID: "theirs", Kind: runs.DecisionToolResult}}
	in.Resume = &runs.Interrupts{RunID: "r0", MessageID: "m0", Items: []runs.Interrupt{theirs}, Spent: &runs.PriorUsage{Duration: 2 * time.Minute}}
	result, _ := f.run(in)
	wantEqual(t, "code", result.Code, runs.CodeLimitDuration)
	wantEqual(t, "number of model calls", len(f.modelCalls), 1)
	mustEqual(t, "number of limit interrupts", len(f.limitInterrupts), 1)
	wantEqual(t, "limit interrupt: turn", f.limitInterrupts[0].Turn, 2)
}
