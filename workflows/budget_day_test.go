package workflows_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// dayBudget uses 60 tokens a turn, and has a soft budget of 100 for a day.
type dayBudget struct {
	used       int64
	allowances []runs.DayAllowance // the day allowance of each model call
}

const (
	today    = "2026-01-31"
	tomorrow = "2026-02-01"
)

// withDayBudget makes the model check the tenant's day budget, as the activity does.
func (f *limitFixture) withDayBudget(by *dayBudget) *limitFixture {
	works := f.model
	f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		by.allowances = append(by.allowances, *in.Day)
		if by.used >= 100 && by.used >= in.Day.Tokens {
			return exceededAnswer(in, runs.ExceededLimit{Limit: pipeline.LimitTokensPerDay, Date: today, Used: by.used, Allowed: by.used + 100}), nil
		}
		by.used += 60
		return works(in)
	}
	return f
}

// exceededAnswer returns the answer of a model call that has met an exceeded budget.
func exceededAnswer(in runs.ModelCall, x runs.ExceededLimit) runs.ModelAnswer {
	a := modelAnswer(in.After + 1)
	x.Code = runs.CodeBudgetExceeded
	a.MessageID, a.Exceeded = "", &x
	return a
}

// exceededDayBudget returns the exceeded limit of the day's budget, after some tokens.
func exceededDayBudget(used int64) runs.ExceededLimit {
	return runs.ExceededLimit{Code: runs.CodeBudgetExceeded, Limit: pipeline.LimitTokensPerDay, Date: today, Used: used, Allowed: used + 100}
}

// TestDayBudgetInterruptsRun: a run whose tenant has used up its soft budget of the day ends with
// an interrupt, without calling the model. The next run may use the approved amount, and asks again
// after it. A rejection ends the run.
func TestDayBudgetInterruptsRun(t *testing.T) {
	t.Parallel()
	var by dayBudget
	in := input
	for i, used := range []int64{120, 240} {
		fixture := setupLimits(t).withDayBudget(&by)
		fixture.decide(time.Minute, []runs.Decision{limitApproval, limitRejection}[i])
		in = fixture.runUntilContinued(in)
		want, end := exceededDayBudget(used), fixture.finished[0]
		mustEqual(t, fmt.Sprintf("run %d: outcome", i), end.Outcome, runs.OutcomeInterrupt)
		mustEqual(t, fmt.Sprintf("run %d: number of interrupts", i), len(end.Interrupts.Items), 1)
		mustEqual(t, fmt.Sprintf("run %d: exceeded limit", i), end.Interrupts.Exceeded, &want)
		mustEqual(t, fmt.Sprintf("run %d: exceeded limits", i), fixture.exceededLimits(), []runs.ExceededLimit{want})
		wantEqual(t, "limit interrupt: ID", fixture.limitInterrupts[0].ID, "3/limit")
		wantEqual(t, "limit interrupt: closed step", fixture.limitInterrupts[0].Closes, "model")
		if fixture.limitInterrupts[0].PipelineStep == nil {
			t.Fatal("limit interrupt: pipeline step = nil, want a value")
		}
		wantEqual(t, "limit interrupt: scope", fixture.limitInterrupts[0].PipelineStep.Scope, runs.ScopeLimit)
		wantEqual(t, "limit interrupt: record before it", fixture.limitInterrupts[0].After, fixture.modelCalls[2].After+1)
		if len(fixture.modelCalls) != 3 {
			t.Errorf("calls of the model: got %d, want 3", len(fixture.modelCalls))
		}
	}
	if want := []runs.DayAllowance{{}, {}, {}, {Date: today, Tokens: 220}, {Date: today, Tokens: 220}, {Date: today, Tokens: 220}}; !slices.Equal(by.allowances, want) {
		t.Errorf("day allowances of the calls: got %+v, want %+v", by.allowances, want)
	}
	last := setupLimits(t).withDayBudget(&by)
	result, _ := last.run(in)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeError)
	wantEqual(t, "code", result.Code, runs.CodeBudgetExceeded)
	wantEqual(t, "number of model calls", len(last.modelCalls), 0)
}

// TestDayBudgetInterruptIsNoTurn: an interrupt for the day budget does not count as a turn, with
// and without soft limits of the run.
func TestDayBudgetInterruptIsNoTurn(t *testing.T) {
	t.Parallel()
	for name, soft := range map[string]*runs.SoftLimits{"alone": nil, "with soft limits": {Turns: 40}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var by dayBudget
			fixture := setupLimits(t).withDayBudget(&by)
			fixture.decide(time.Minute, limitApproval)
			in := input
			in.Hold, in.Limits.Turns, in.Limits.Soft = true, 3, soft
			result, _ := fixture.run(in)
			wantEqual(t, "code", result.Code, runs.CodeLimitTurns)
			wantEqual(t, "tokens of the day", by.used, 180)
			wantEqual(t, "number of limit interrupts", len(fixture.limitInterrupts), 1)
		})
	}
}

// TestDayAllowanceCountsForOneDay: an approved allowance counts for one day. Tokens and cost are
// approved separately.
func TestDayAllowanceCountsForOneDay(t *testing.T) {
	t.Parallel()
	fixture := setupLimits(t)
	excesses := []runs.ExceededLimit{
		{Limit: pipeline.LimitTokensPerDay, Date: today, Allowed: 220},
		{Limit: pipeline.LimitCostPerDay, Date: today, Allowed: 500},
		{Limit: pipeline.LimitTokensPerDay, Date: tomorrow, Allowed: 100},
	}
	var days []runs.DayAllowance
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if days = append(days, *in.Day); len(days) <= len(excesses) {
			return exceededAnswer(in, excesses[len(days)-1]), nil
		}
		return modelAnswer(in.After + 1), nil
	}
	for i := range excesses {
		fixture.decide(time.Duration(i+1)*time.Minute, limitApproval)
	}
	in := input
	in.Hold = true
	result, _ := fixture.run(in)
	want := []runs.DayAllowance{{}, {Date: today, Tokens: 220}, {Date: today, Tokens: 220, Cost: 500}, {Date: tomorrow, Tokens: 100}}
	if result.Outcome != runs.OutcomeSuccess || !slices.Equal(days, want) {
		t.Errorf("got %+v with the day allowances %+v, want %+v", result, days, want)
	}
}

// TestDayAllowanceSurvivesContinueAsNew: a run that continues as new keeps the approved allowance
// and the number of its turns.
func TestDayAllowanceSurvivesContinueAsNew(t *testing.T) {
	t.Parallel()
	var by dayBudget
	f := setupLimits(t).withDayBudget(&by)
	in := input
	in.Hold, in.Limits.Turns, in.ParkAfter = true, 4, time.Minute
	f.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	decodeContinuation(t, f.env.GetWorkflowError(), runs.TypeParked, &parked)
	in = runParked(t, parked, time.Second, func(execution *fixture) {
		execution.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{limitApproval}}, make(chan any, 1))
	})
	nextFixture := setupLimits(t).withDayBudget(&by)
	nextFixture.env.SetContinueAsNewSuggested(true)
	in = nextFixture.runUntilContinued(in)
	mustEqual(t, "usage after continue-as-new: day", in.Progress.Spent.Day, runs.DayAllowance{Date: today, Tokens: 220})
	last := setupLimits(t).withDayBudget(&by)
	last.decide(time.Second, limitApproval)
	result, _ := last.run(in)
	wantEqual(t, "code", result.Code, runs.CodeLimitTurns)
	wantEqual(t, "tokens of the day", by.used, 240)
}

// TestDayAllowanceBelongsToInput: an approved allowance counts for all runs of one input, and for
// no other input.
func TestDayAllowanceBelongsToInput(t *testing.T) {
	t.Parallel()
	allowed := runs.DayAllowance{Date: today, Tokens: 220}
	for kind, want := range map[runs.DecisionKind]runs.DayAllowance{runs.DecisionToolResult: allowed, runs.DecisionAbandon: {}} {
		fixture := setupHeld(t) // its first turn asks people
		fixture.decide(time.Minute, clientResult, approvalOf("ask"))
		in := input
		theirs := runs.Interrupt{Call: runs.Call{ID: "theirs", Client: true}, Decision: &runs.Decision{CallID: "theirs", Kind: kind}}
		in.Resume = &runs.Interrupts{RunID: "r0", MessageID: "m0", Items: []runs.Interrupt{theirs}, Spent: &runs.PriorUsage{Day: allowed}}
		next := fixture.runUntilContinued(in)
		var got runs.DayAllowance
		if s := next.Resume.Spent; s != nil {
			got = s.Day
		}
		if *fixture.modelCalls[0].Day != want || got != want {
			t.Errorf("%s: allowance of the call: got %+v; allowance of the next run: got %+v; want both %+v", kind, *fixture.modelCalls[0].Day, got, want)
		}
	}
}

// TestDayBudgetOfProgram: an agent of a program that is not called for lack of day budget takes no
// turn. It continues in the run with the decision.
func TestDayBudgetOfProgram(t *testing.T) {
	t.Parallel()
	base := setupPrograms(t, workflows.Programs{"p": func(ctx workflow.Context, a *workflows.Agent) error {
		return a.Do(ctx, agents.Step{Name: "work", Agent: &agents.AgentStep{}})
	}})
	fixture := &limitFixture{heldFixture: &heldFixture{fixture: base}}
	fixture.registerLimitInterrupt()
	var seq uint64
	base.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		seq += 10
		next := runs.AdvanceResult{Seq: seq, TreePosition: in.Position.TreePosition}
		if !in.Resumes && in.Position.Event.Kind == pipeline.EventBegun {
			next.Active = &runs.ActiveStep{AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: runs.Limits{Turns: 1, ParallelTools: 1}}, PipelineStep: runs.StepRef{Path: "work", Name: "work", Inline: true}}
		} else if !in.Resumes && in.Position.Event.Failure != nil {
			next.Failed = in.Position.Event.Failure
		}
		return next, nil
	}
	base.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Day.Tokens == 0 {
			return exceededAnswer(in, exceededDayBudget(120)), nil
		}
		return modelAnswer(in.After + 1), nil
	}
	base.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Seq: in.After + 2, Opened: in.After + 1}, nil
	}
	fixture.decide(time.Minute, limitApproval)
	in := input
	in.Program = "p"
	result, _ := base.run(in)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	wantEqual(t, "number of model calls", len(base.modelCalls), 2)
	wantEqual(t, "number of limit interrupts", len(fixture.limitInterrupts), 1)
	wantEqual(t, "number of ends", len(base.finished), 2)
}

// TestBranchesRaiseNoDayBudgetInterrupt: calls in branches and compensations do not ask about the
// day budget. They go through.
func TestBranchesRaiseNoDayBudgetInterrupt(t *testing.T) {
	t.Parallel()
	f := setupPipeline(t, `
steps:
  - {name: one, agent: one, compensate: {agent: undo}}
  - name: all
    parallel: [{name: b, agent: two}, {name: c, agent: three}]
  - {name: last, tool: last}
`)
	f.executeStep = eventsByPath(map[string]string{"last": "!lost"})
	mayInterrupt := map[string]bool{}
	f.onExecution = func(execution *fixture, _ any) {
		execution.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			mayInterrupt[in.PipelineStep.Path] = in.Day != nil
			f.checkPosition(in.Step)
			a := modelAnswer(f.write(laneOf(in.Step), in.Name))
			f.eventOf[a.MessageID] = doneEvent(`"done"`)
			return a, nil
		}
	}
	f.wantResult(f.runToEnd(stepsInput()), runs.OutcomeError, "lost", "last")
	if want := map[string]bool{"one": true, "all/b": false, "all/c": false, "one~undo": false}; !maps.Equal(mayInterrupt, want) {
		t.Errorf("steps that may ask for approval: got %v, want %v", mayInterrupt, want)
	}
}

// TestCancelledRunRaisesNoDayBudgetInterrupt: a run that is cancelled while its call finds the day
// budget used up raises no interrupt.
func TestCancelledRunRaisesNoDayBudgetInterrupt(t *testing.T) {
	t.Parallel()
	fixture := setupLimits(t)
	fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		fixture.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
		return exceededAnswer(in, exceededDayBudget(120)), nil
	}
	result, _ := fixture.run(input)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
	wantEqual(t, "number of limit interrupts", len(fixture.limitInterrupts), 0)
}
