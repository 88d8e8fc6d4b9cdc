package workflows_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func setupLimits(t *testing.T) *limitFixture {
	t.Helper()
	f := &limitFixture{heldFixture: setupHeld(t)}
	f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a := modelAnswer(in.After+1, "work")
		n := int64(60)
		a.Usage = runs.Usage{Provider: "p", Model: "m", Total: &n}
		return a, nil
	}
	f.registerLimitInterrupt()
	return f
}

// registerLimitInterrupt registers the activity that raises limit interrupts.
func (f *limitFixture) registerLimitInterrupt() {
	f.env.RegisterActivityWithOptions(func(_ context.Context, in runs.LimitInterrupt) (runs.ModelAnswer, error) {
		f.limitInterrupts = append(f.limitInterrupts, in)
		a := modelAnswer(in.After+1, "beyond")
		a.MessageID, a.WaitCount = "question", 1
		a.Calls[0].Tool, a.Calls[0].Approval = "approve", &runs.Approval{Args: "figures", Expires: time.Hour}
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

func inputWithSoftLimits(soft runs.SoftLimits) runs.Input {
	in := input
	in.Limits = runs.Limits{Turns: 50, Tokens: 250, Duration: time.Hour, ParallelTools: 4, Soft: &soft}
	return in
}

var (
	limitApproval  = runs.Decision{CallID: "beyond", Kind: runs.DecisionApprove, Digest: "yes", Args: "figures"}
	limitRejection = runs.Decision{CallID: "beyond", Kind: runs.DecisionReject, Digest: "no", Input: 71}
)

// TestSoftLimitInterruptsRun: a run that passes a soft limit ends with an interrupt. The next run counts
// the earlier usage, may use as much again, and asks again. The hard limit ends it.
func TestSoftLimitInterruptsRun(t *testing.T) {
	t.Parallel()
	in := inputWithSoftLimits(runs.SoftLimits{Tokens: 100})
	var calls, turns int
	for i, want := range []runs.ExceededLimit{
		{Code: runs.CodeLimitTokens, Used: 120, Allowed: 220},
		{Code: runs.CodeLimitTokens, Used: 240, Allowed: 250},
	} {
		f := setupLimits(t)
		f.decide(time.Minute, limitApproval)
		in = f.runUntilContinued(in)
		end := f.finished[0]
		if end.Outcome != runs.OutcomeInterrupt || len(end.Interrupts.Items) != 1 || !cmp.Equal(end.Interrupts.Exceeded, &want) || !cmp.Equal(f.exceededLimits(), []runs.ExceededLimit{want}) {
			t.Fatalf("run %d: got the interrupts %+v and the end %+v", i, f.limitInterrupts, end)
		}
		if set := end.Interrupts; set.Agent != "a" || set.Step != "~limit" || set.MessageID != "question" {
			t.Errorf("interrupts: got %+v", set)
		}
		if a := f.limitInterrupts[0]; a.ID != "3/limit" || a.Name != "limit" || a.Closes != "tools" || a.Place == nil || a.Place.Scope != runs.ScopeLimit || a.Beginning != (runs.Beginning{}) {
			t.Errorf("limit interrupt: got %+v", a)
		}
		turns += len(f.modelCalls)
		if got := in.Resume.Spent; got == nil || got.Turns != turns || got.Tokens != want.Used {
			t.Errorf("usage in the next run: got %+v, want %d turns and %d tokens", got, turns, want.Used)
		}
		if i > 0 { // the interrupt of the previous run
			if c := f.calls[0]; c.CallID != "beyond" || c.Place == nil || !c.Place.Inline || c.Name != "limit" || c.Decision == nil || f.calls[1].Closes != "model" {
				t.Errorf("call of the interrupt: got %+v", c)
			}
			if m := f.modelCalls[0]; m.Closes != "limit" || m.ID != "1/model" {
				t.Errorf("next turn: got %+v", m)
			}
		}
		calls += len(f.calls)
	}
	last := setupLimits(t)
	result, _ := last.run(in)
	if result.Code != runs.CodeLimitTokens || len(last.modelCalls) != 1 || len(last.limitInterrupts) != 0 {
		t.Errorf("got %+v after %d turns and %d interrupts", result, len(last.modelCalls), len(last.limitInterrupts))
	}
	if calls != 5 {
		t.Errorf("got %d calls, want 4 of the model and one of the interrupt", calls)
	}
}

// TestSubagentExceedsHardLimit: a subagent's usage counts when the subagent ends. If it passes
// the hard limit, the run ends without another model call and without an interrupt.
func TestSubagentExceedsHardLimit(t *testing.T) {
	t.Parallel()
	for name, soft := range map[string]*runs.SoftLimits{"without a soft limit": nil, "with one": {Tokens: 100}} {
		f := setupLimits(t)
		f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
			n := int64(200)
			return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: in.After + 2, Usage: []runs.Usage{{Provider: "p", Model: "m", Total: &n}}}, nil
		}
		in := inputWithSoftLimits(runs.SoftLimits{})
		in.Limits.Soft = soft
		if result, _ := f.run(in); result.Code != runs.CodeLimitTokens || len(f.modelCalls) != 1 || len(f.limitInterrupts) != 0 {
			t.Errorf("%s: got %+v after %d turns and the interrupts %+v", name, result, len(f.modelCalls), f.exceededLimits())
		}
	}
}

// TestRejectedSoftLimitEndsRun: a rejected or expired limit interrupt ends the run with the code of the
// limit.
func TestRejectedSoftLimitEndsRun(t *testing.T) {
	t.Parallel()
	for name, decisions := range map[string][]runs.Decision{"rejected": {limitRejection}, "expired": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setupLimits(t)
			f.decide(time.Minute, decisions...)
			in := inputWithSoftLimits(runs.SoftLimits{Turns: 1})
			in.ParkAfter = 2 * time.Hour
			next := f.runUntilContinued(in)
			again := setupLimits(t)
			result, _ := again.run(next)
			if result.Outcome != runs.OutcomeError || result.Code != runs.CodeLimitTurns || len(again.modelCalls) != 0 || len(again.calls) != 1 {
				t.Errorf("got %+v after %d turns and the calls %+v", result, len(again.modelCalls), again.calls)
			}
		})
	}
}

// TestSoftLimitOfHeldRun: a held run raises the interrupt within the run. The interrupt's step has a
// turn number, but does not count as a turn.
func TestSoftLimitOfHeldRun(t *testing.T) {
	t.Parallel()
	f := setupLimits(t)
	f.decide(time.Minute, limitApproval)
	in := inputWithSoftLimits(runs.SoftLimits{Turns: 2})
	in.Hold, in.Limits.Turns = true, 3
	result, _ := f.run(in)
	if result.Code != runs.CodeLimitTurns || len(f.modelCalls) != 3 || len(f.limitInterrupts) != 1 {
		t.Fatalf("got %+v after %d turns and %d interrupts", result, len(f.modelCalls), len(f.limitInterrupts))
	}
	if x := f.limitInterrupts[0].Exceeded; x != (runs.ExceededLimit{Code: runs.CodeLimitTurns, Used: 2, Allowed: 3}) {
		t.Errorf("exceeded limit: got %+v", x)
	}
	var steps []string
	for _, m := range f.modelCalls {
		steps = append(steps, m.ID)
	}
	if want := []string{"1/model", "2/model", "4/model"}; !slices.Equal(steps, want) || f.announced[0].ID != "3/hold" || f.announced[0].Interrupts.Exceeded == nil {
		t.Errorf("got the turns %q and the announced interrupts %+v", steps, f.announced)
	}
	if c := f.calls[2]; c.ID != "3/held/0" || c.Name != "limit" || c.Place == nil {
		t.Errorf("call of the interrupt: got %+v", c)
	}

	f = setupLimits(t)
	f.decide(time.Minute, limitRejection)
	if result, _ := f.run(in); result.Code != runs.CodeLimitTurns || len(f.modelCalls) != 2 || result.Outcome != runs.OutcomeError {
		t.Errorf("got %+v after %d turns", result, len(f.modelCalls))
	}
}

// TestEditedSoftLimit: an edit of the approval sets the new limit.
func TestEditedSoftLimit(t *testing.T) {
	t.Parallel()
	f := setupLimits(t)
	edits := runs.Decision{CallID: "beyond", Kind: runs.DecisionEdit, Digest: "edit", Args: "other figures", Allowed: 170, Input: 71}
	f.decide(time.Minute, edits)
	in := f.runUntilContinued(inputWithSoftLimits(runs.SoftLimits{Tokens: 100}))
	again := setupLimits(t)
	again.decide(time.Minute, limitRejection)
	in = again.runUntilContinued(in)
	want := runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 180, Allowed: 250}
	if c := again.calls[0]; len(again.modelCalls) != 1 || !cmp.Equal(again.exceededLimits(), []runs.ExceededLimit{want}) || c.Decision == nil || c.Decision.Args != "other figures" || !c.Opens.Edits {
		t.Errorf("after %d turns: got the interrupts %+v, after the call %+v", len(again.modelCalls), again.exceededLimits(), c)
	}
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
	again := setupLimits(t)
	again.env.SetContinueAsNewSuggested(true)
	next = again.runUntilContinued(next)
	if p := next.Progress; len(again.modelCalls) != 0 || p.Spent.Turns != 2 || p.Spent.Allowed.Tokens != 220 {
		t.Fatalf("usage of the next execution: got %+v after %d turns", next.Progress.Spent, len(again.modelCalls))
	}
	last := setupLimits(t)
	last.decide(time.Second, limitRejection)
	result, _ := last.run(next)
	if result.Code != runs.CodeLimitTokens || len(last.modelCalls) != 2 || !cmp.Equal(last.exceededLimits(), []runs.ExceededLimit{{Code: runs.CodeLimitTokens, Used: 240, Allowed: 250}}) {
		t.Errorf("got %+v after %d turns and the interrupts %+v", result, len(last.modelCalls), last.exceededLimits())
	}
}

// TestKindsOfSoftLimits: each soft limit raises an interrupt, with figures in the limit's unit.
func TestKindsOfSoftLimits(t *testing.T) {
	t.Parallel()
	for code, soft := range map[string]runs.SoftLimits{
		runs.CodeLimitTokens: {Tokens: 60}, runs.CodeLimitCost: {Cost: 700}, runs.CodeLimitTurns: {Turns: 1}, runs.CodeLimitDuration: {Duration: time.Minute},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			f := setupLimits(t)
			spends := f.model
			f.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
				a, err := spends(in)
				cost := int64(700)
				a.Usage.Cost = &cost
				return a, err
			}
			f.decide(time.Minute, limitRejection)
			in := inputWithSoftLimits(soft)
			in.Progress = &runs.Progress{Execution: "e", Turn: 1, LaneSequences: runs.LaneSequences{Main: 1}, Budget: runs.Budget{Deadline: f.env.Now().Add(time.Hour)}}
			want := runs.ExceededLimit{Code: code, Used: 120, Allowed: 180} // reaching the limit does not pass it
			switch code {
			case runs.CodeLimitCost:
				want.Used, want.Allowed = 1400, 2100
			case runs.CodeLimitTurns:
				want.Used, want.Allowed = 1, 2
			case runs.CodeLimitDuration:
				in.Progress.Deadline = f.env.Now().Add(time.Hour - 2*time.Minute)
			}
			in.Hold = true
			if result, _ := f.run(in); result.Code != code || len(f.limitInterrupts) != 1 {
				t.Fatalf("got %+v and the interrupts %+v", result, f.limitInterrupts)
			}
			got := f.limitInterrupts[0].Exceeded
			if code == runs.CodeLimitDuration { // the clock advances meanwhile
				over := time.Duration(got.Used) - 2*time.Minute
				if over < 0 || over > time.Minute || got.Allowed-got.Used != int64(time.Minute) {
					t.Errorf("exceeded limit: got %+v", got)
				}
				return
			}
			if got != want {
				t.Errorf("exceeded limit: got %+v, want %+v", got, want)
			}
			if priced := code == runs.CodeLimitCost; f.modelCalls[0].Priced != priced {
				t.Errorf("model calls require prices: got %t, want %t", f.modelCalls[0].Priced, priced)
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
	f := &limitFixture{heldFixture: &heldFixture{fixture: base}}
	f.registerLimitInterrupt()
	var seq uint64
	base.advance = func(in runs.AdvanceInput) (runs.AdvanceResult, error) {
		seq += 10
		next := runs.AdvanceResult{Seq: seq, Cursor: in.Position.Cursor}
		if !in.Resumes && in.Position.Event.Kind == pipeline.EventBegun {
			next.Active = &runs.ActiveStep{AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: input.Limits}, Place: runs.StepPlace{Path: "work", Name: "work", Inline: true}}
		} else if !in.Resumes && in.Position.Event.Failure != nil {
			next.Failed = in.Position.Event.Failure
		}
		return next, nil
	}
	base.model = func(in runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(in.After + 1), nil }
	base.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Seq: in.After + 2, Opened: in.After + 1}, nil
	}
	f.decide(time.Minute, limitApproval)
	f.decide(2*time.Minute, limitRejection)
	in := inputWithSoftLimits(runs.SoftLimits{Turns: 2})
	in.Program = "p"
	result, _ := base.run(in)
	if result.Code != runs.CodeLimitTurns || done != 4 || failed == nil || failed.Code != result.Code {
		t.Errorf("got %+v after %d steps: %v", result, done, failed)
	}
	if want := []runs.ExceededLimit{{Code: runs.CodeLimitTurns, Used: 2, Allowed: 4}, {Code: runs.CodeLimitTurns, Used: 4, Allowed: 6}}; !cmp.Equal(f.exceededLimits(), want) || len(base.finished) != 3 {
		t.Errorf("got the interrupts %+v and the ends %+v", f.exceededLimits(), base.finished)
	}
}

// TestUsageBelongsToInput: usage counts in the run that brings results of client tool
// calls, and not in the run of a new input.
func TestUsageBelongsToInput(t *testing.T) {
	t.Parallel()
	spent := &runs.PriorUsage{Turns: 2, Tokens: 120, Duration: 10 * time.Minute}
	for verdict, atOnce := range map[runs.DecisionKind]bool{runs.DecisionToolResult: true, runs.DecisionAbandon: false} {
		f := setupLimits(t)
		f.decide(time.Minute, limitApproval)
		in := inputWithSoftLimits(runs.SoftLimits{Tokens: 100})
		in.Hold, in.Limits.Tokens = true, 130
		waiting := runs.Interrupt{Call: runs.Call{ID: "theirs", Client: true}, Decision: &runs.Decision{CallID: "theirs", Kind: verdict}}
		in.Resume = &runs.Interrupts{RunID: "r0", MessageID: "m0", Items: []runs.Interrupt{waiting}, Spent: spent}
		result, _ := f.run(in)
		if len(f.limitInterrupts) != 1 || result.Code != runs.CodeLimitTokens {
			t.Errorf("%s: got %+v after the interrupts %+v", verdict, result, f.exceededLimits())
			continue
		}
		first := f.limitInterrupts[0]
		if hasOpen := first.Beginning != (runs.Beginning{}); hasOpen != atOnce || first.Exceeded.Used != 120 || (len(f.modelCalls) == 1) != atOnce {
			t.Errorf("%s: first interrupt: got %+v", verdict, first)
		}
	}
}
