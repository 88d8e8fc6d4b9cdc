package workflows_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// tenant uses 60 tokens a turn, and has a soft budget of 100 for a day.
type tenant struct {
	used int64
	days []runs.DayAllowance // the day allowance of each model call
}

const (
	today    = "2026-01-31"
	tomorrow = "2026-02-01"
)

// spends makes the model check the tenant's day budget, as the activity does.
func (s *limitFixture) spends(by *tenant) *limitFixture {
	works := s.model
	s.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		by.days = append(by.days, *in.Day)
		if by.used >= 100 && by.used >= in.Day.Tokens {
			return notCalled(in, runs.ExceededLimit{Limit: pipeline.LimitTokensPerDay, Date: today, Used: by.used, Allowed: by.used + 100}), nil
		}
		by.used += 60
		return works(in)
	}
	return s
}

func notCalled(in runs.ModelCall, x runs.ExceededLimit) runs.ModelAnswer {
	a := says(in.After + 1)
	x.Code = runs.CodeBudgetExceeded
	a.MessageID, a.Exceeded = "", &x
	return a
}

func beyondDay(used int64) runs.ExceededLimit {
	return runs.ExceededLimit{Code: runs.CodeBudgetExceeded, Limit: pipeline.LimitTokensPerDay, Date: today, Used: used, Allowed: used + 100}
}

// TestADayAsks: a run whose tenant has used up its soft budget of the day ends with an interrupt,
// without calling the model. The next run may use the approved amount, and asks again after it. A
// rejection ends the run.
func TestADayAsks(t *testing.T) {
	t.Parallel()
	var by tenant
	in := input
	for i, used := range []int64{120, 240} {
		s := setupLimits(t).spends(&by)
		s.decide(time.Minute, []runs.Decision{goesOn, stops}[i])
		in = s.continued(in)
		want, end := beyondDay(used), s.finished[0]
		if end.Outcome != runs.OutcomeInterrupt || len(end.Interrupts.Items) != 1 || !cmp.Equal(end.Interrupts.Exceeded, &want) || !cmp.Equal(s.excesses(), []runs.ExceededLimit{want}) {
			t.Fatalf("run %d: got the interrupts %+v and the end %+v", i, s.asked, end)
		}
		if a := s.asked[0]; a.ID != "3/limit" || a.Closes != "model" || a.Place == nil || a.Place.Scope != runs.ScopeLimit || a.After != s.models[2].After+1 {
			t.Errorf("limit interrupt: got %+v", a)
		}
		if len(s.models) != 3 {
			t.Errorf("calls of the model: got %d, want 3", len(s.models))
		}
	}
	if want := []runs.DayAllowance{{}, {}, {}, {Date: today, Tokens: 220}, {Date: today, Tokens: 220}, {Date: today, Tokens: 220}}; !slices.Equal(by.days, want) {
		t.Errorf("day allowances of the calls: got %+v, want %+v", by.days, want)
	}
	last := setupLimits(t).spends(&by)
	result, _ := last.run(in)
	if result.Outcome != runs.OutcomeError || result.Code != runs.CodeBudgetExceeded || len(last.models) != 0 {
		t.Errorf("%+v after %d turns", result, len(last.models))
	}
}

// TestDayBudgetInterruptsAreNoTurns: an interrupt for the day budget does not count as a turn, with
// and without soft limits of the run.
func TestDayBudgetInterruptsAreNoTurns(t *testing.T) {
	t.Parallel()
	for name, soft := range map[string]*runs.SoftLimits{"alone": nil, "with soft limits": {Turns: 40}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var by tenant
			s := setupLimits(t).spends(&by)
			s.decide(time.Minute, goesOn)
			in := input
			in.Hold, in.Limits.Turns, in.Limits.Soft = true, 3, soft
			result, _ := s.run(in)
			if result.Code != runs.CodeLimitTurns || by.used != 180 || len(s.asked) != 1 {
				t.Errorf("got %+v after %d tokens and the interrupts %+v", result, by.used, s.excesses())
			}
		})
	}
}

// TestADayBeginsAnew: an approved allowance counts for one day. Tokens and cost are approved
// separately.
func TestADayBeginsAnew(t *testing.T) {
	t.Parallel()
	s := setupLimits(t)
	excesses := []runs.ExceededLimit{
		{Limit: pipeline.LimitTokensPerDay, Date: today, Allowed: 220},
		{Limit: pipeline.LimitCostPerDay, Date: today, Allowed: 500},
		{Limit: pipeline.LimitTokensPerDay, Date: tomorrow, Allowed: 100},
	}
	var days []runs.DayAllowance
	s.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if days = append(days, *in.Day); len(days) <= len(excesses) {
			return notCalled(in, excesses[len(days)-1]), nil
		}
		return says(in.After + 1), nil
	}
	for i := range excesses {
		s.decide(time.Duration(i+1)*time.Minute, goesOn)
	}
	in := input
	in.Hold = true
	result, _ := s.run(in)
	want := []runs.DayAllowance{{}, {Date: today, Tokens: 220}, {Date: today, Tokens: 220, Cost: 500}, {Date: tomorrow, Tokens: 100}}
	if result.Outcome != runs.OutcomeSuccess || !slices.Equal(days, want) {
		t.Errorf("got %+v with the day allowances %+v, want %+v", result, days, want)
	}
}

// TestADayIsCarriedOn: a run that continues as new keeps the approved allowance and the number of
// its turns.
func TestADayIsCarriedOn(t *testing.T) {
	t.Parallel()
	var by tenant
	s := setupLimits(t).spends(&by)
	in := input
	in.Hold, in.Limits.Turns, in.ParkAfter = true, 4, time.Minute
	s.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	continuedAs(t, s.env.GetWorkflowError(), runs.TypeParked, &parked)
	in = unpark(t, parked, time.Second, func(w *fixture) {
		w.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{goesOn}}, make(chan any, 1))
	})
	again := setupLimits(t).spends(&by)
	again.env.SetContinueAsNewSuggested(true)
	in = again.continued(in)
	if p := in.Progress.Spent; p.Day != (runs.DayAllowance{Date: today, Tokens: 220}) {
		t.Fatalf("usage after continue-as-new: got %+v", p)
	}
	last := setupLimits(t).spends(&by)
	last.decide(time.Second, goesOn)
	result, _ := last.run(in)
	if result.Code != runs.CodeLimitTurns || by.used != 240 {
		t.Errorf("%+v after %d tokens", result, by.used)
	}
}

// TestADayBelongsToItsInput: an approved allowance counts for all runs of one input, and for no
// other input.
func TestADayBelongsToItsInput(t *testing.T) {
	t.Parallel()
	allowed := runs.DayAllowance{Date: today, Tokens: 220}
	for verdict, want := range map[runs.DecisionKind]runs.DayAllowance{runs.DecisionToolResult: allowed, runs.DecisionAbandon: {}} {
		h := setupHeld(t) // its first turn asks people
		h.decide(time.Minute, clientResult, approves("ask"))
		in := input
		theirs := runs.Interrupt{Call: runs.Call{ID: "theirs", Client: true}, Decision: &runs.Decision{CallID: "theirs", Kind: verdict}}
		in.Resume = &runs.Interrupts{RunID: "r0", MessageID: "m0", Items: []runs.Interrupt{theirs}, Spent: &runs.PriorUsage{Day: allowed}}
		next := h.continued(in)
		var got runs.DayAllowance
		if s := next.Resume.Spent; s != nil {
			got = s.Day
		}
		if *h.models[0].Day != want || got != want {
			t.Errorf("%s: allowance of the call: got %+v; allowance of the next run: got %+v; want both %+v", verdict, *h.models[0].Day, got, want)
		}
	}
}

// TestADayOfAProgram: an agent of a program that is not called for lack of day budget takes no
// turn. It continues in the run with the decision.
func TestADayOfAProgram(t *testing.T) {
	t.Parallel()
	w := setupPrograms(t, workflows.Programs{"p": func(ctx workflow.Context, a *workflows.Agent) error {
		return a.Do(ctx, agents.Step{Name: "work", Agent: &agents.AgentStep{}})
	}})
	s := &limitFixture{heldFixture: &heldFixture{fixture: w}}
	s.ask()
	var seq uint64
	w.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		seq += 10
		next := runs.AdvanceResult{Seq: seq, Cursor: in.Position.Cursor}
		if !in.Resumes && in.Position.Event.Kind == pipeline.EventBegun {
			next.Active = &runs.ActiveStep{AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: runs.Limits{Turns: 1, ParallelTools: 1}}, Place: runs.StepPlace{Path: "work", Name: "work", Inline: true}}
		} else if !in.Resumes && in.Position.Event.Failure != nil {
			next.Failed = in.Position.Event.Failure
		}
		return next, nil
	}
	w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Day.Tokens == 0 {
			return notCalled(in, beyondDay(120)), nil
		}
		return says(in.After + 1), nil
	}
	w.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Seq: in.After + 2, Opened: in.After + 1}, nil
	}
	s.decide(time.Minute, goesOn)
	in := input
	in.Program = "p"
	result, _ := w.run(in)
	if result.Outcome != runs.OutcomeSuccess || len(w.models) != 2 || len(s.asked) != 1 || len(w.finished) != 2 {
		t.Errorf("got %+v after %d calls and the interrupts %+v", result, len(w.models), s.excesses())
	}
}

// TestBranchesDoNotAskAboutTheDayBudget: calls in branches and compensations do not ask about the
// day budget. They go through.
func TestBranchesDoNotAskAboutTheDayBudget(t *testing.T) {
	t.Parallel()
	k := setupPipeline(t, `
steps:
  - {name: one, agent: one, compensate: {agent: undo}}
  - name: all
    parallel: [{name: b, agent: two}, {name: c, agent: three}]
  - {name: last, tool: last}
`)
	k.answer = byPath(map[string]string{"last": "!lost"})
	asks := map[string]bool{}
	k.begun = func(w *fixture, _ any) {
		w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			asks[in.Place.Path] = in.Day != nil
			k.checkPosition(in.Step)
			a := says(k.write(lane(in.Step), in.Name))
			k.came[a.MessageID] = done(`"done"`)
			return a, nil
		}
	}
	k.want(k.walk(stepsInput()), runs.OutcomeError, "lost", "last")
	if want := map[string]bool{"one": true, "all/b": false, "all/c": false, "one~undo": false}; !maps.Equal(asks, want) {
		t.Errorf("steps that may ask for approval: got %v, want %v", asks, want)
	}
}

// TestADayOfACancelledRun: a run that is cancelled while its call finds the day budget used up
// raises no interrupt.
func TestADayOfACancelledRun(t *testing.T) {
	t.Parallel()
	s := setupLimits(t)
	s.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		s.env.SignalWorkflow(runs.SignalCancel, runs.CancelRequest{RunID: "r"})
		return notCalled(in, beyondDay(120)), nil
	}
	if result, _ := s.run(input); result.Outcome != runs.OutcomeCancelled || len(s.asked) != 0 {
		t.Errorf("got %+v after the interrupts %+v", result, s.excesses())
	}
}
