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
	asked []runs.LimitInterrupt
}

func setupLimits(t *testing.T) *limitFixture {
	t.Helper()
	s := &limitFixture{heldFixture: setupHeld(t)}
	s.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		a := says(in.After+1, "work")
		n := int64(60)
		a.Usage = runs.Usage{Provider: "p", Model: "m", Total: &n}
		return a, nil
	}
	s.ask()
	return s
}

// ask has people asked.
func (s *limitFixture) ask() {
	s.env.RegisterActivityWithOptions(func(_ context.Context, in runs.LimitInterrupt) (runs.ModelAnswer, error) {
		s.asked = append(s.asked, in)
		a := says(in.After+1, "beyond")
		a.MessageID, a.WaitCount = "question", 1
		a.Calls[0].Tool, a.Calls[0].Approval = "approve", &runs.Approval{Args: "figures", Expires: time.Hour}
		return a, nil
	}, activity.RegisterOptions{Name: runs.ActivityLimitInterrupt})
}

// excesses returns what people were asked about.
func (s *limitFixture) excesses() (all []runs.ExceededLimit) {
	for _, a := range s.asked {
		all = append(all, a.Exceeded)
	}
	return all
}

func softInput(soft runs.SoftLimits) runs.Input {
	in := input
	in.Limits = runs.Limits{Turns: 50, Tokens: 250, Duration: time.Hour, ParallelTools: 4, Soft: &soft}
	return in
}

var (
	goesOn = runs.Decision{CallID: "beyond", Kind: runs.DecisionApprove, Digest: "yes", Args: "figures"}
	stops  = runs.Decision{CallID: "beyond", Kind: runs.DecisionReject, Digest: "no", Input: 71}
)

// A run that has passed a soft limit ends with a question. The one that goes on counts what was
// used, is let go as much further, and asks again; the hard limit ends it.
func TestASoftLimitAsks(t *testing.T) {
	t.Parallel()
	in := softInput(runs.SoftLimits{Tokens: 100})
	var calls, turns int
	for i, want := range []runs.ExceededLimit{
		{Code: runs.CodeLimitTokens, Used: 120, Allowed: 220},
		{Code: runs.CodeLimitTokens, Used: 240, Allowed: 250},
	} {
		s := setupLimits(t)
		s.decide(time.Minute, goesOn)
		in = s.continued(in)
		end := s.finished[0]
		if end.Outcome != runs.OutcomeInterrupt || len(end.Interrupts.Calls) != 1 || !cmp.Equal(end.Interrupts.Exceeded, &want) || !cmp.Equal(s.excesses(), []runs.ExceededLimit{want}) {
			t.Fatalf("run %d asks %+v, and ends with %+v", i, s.asked, end)
		}
		if w := end.Interrupts; w.Agent != "a" || w.Step != "~limit" || w.MessageID != "question" {
			t.Errorf("the question is that of %+v", w)
		}
		if a := s.asked[0]; a.ID != "3/limit" || a.Name != "limit" || a.Closes != "tools" || a.Place == nil || a.Place.Scope != runs.ScopeLimit || a.Beginning != (runs.Beginning{}) {
			t.Errorf("it asks with %+v", a)
		}
		turns += len(s.models)
		if got := in.Resume.Spent; got == nil || got.Turns != turns || got.Tokens != want.Used {
			t.Errorf("the run behind knows of %+v", got)
		}
		if i > 0 { // the question of the run before
			if c := s.calls[0]; c.CallID != "beyond" || c.Place == nil || !c.Place.Inline || c.Name != "limit" || c.Decision == nil || s.calls[1].Closes != "model" {
				t.Errorf("the call of the question is %+v", c)
			}
			if m := s.models[0]; m.Closes != "limit" || m.ID != "1/model" {
				t.Errorf("the turn behind is %+v", m)
			}
		}
		calls += len(s.calls)
	}
	last := setupLimits(t)
	result, _ := last.run(in)
	if result.Code != runs.CodeLimitTokens || len(last.models) != 1 || len(last.asked) != 0 {
		t.Errorf("%+v after %d turns and %d questions", result, len(last.models), len(last.asked))
	}
	if calls != 5 {
		t.Errorf("%d calls, want 4 of the model and one of the question", calls)
	}
}

// What a subagent has used counts when it has ended. If that is more than the run may, no further
// model is called, and nobody is asked whether it may go on: it may not.
func TestASubagentUsesMoreThanIsLeft(t *testing.T) {
	t.Parallel()
	for name, soft := range map[string]*runs.SoftLimits{"without a soft limit": nil, "with one": {Tokens: 100}} {
		s := setupLimits(t)
		s.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
			n := int64(200)
			return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: in.After + 2, Usage: []runs.Usage{{Provider: "p", Model: "m", Total: &n}}}, nil
		}
		in := softInput(runs.SoftLimits{})
		in.Limits.Soft = soft
		if result, _ := s.run(in); result.Code != runs.CodeLimitTokens || len(s.models) != 1 || len(s.asked) != 0 {
			t.Errorf("%s: %+v after %d turns and the questions %+v", name, result, len(s.models), s.excesses())
		}
	}
}

// Who does not let a run go on ends it, with the code of the limit and nothing done.
func TestASoftLimitEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, decisions := range map[string][]runs.Decision{"rejected": {stops}, "expired": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupLimits(t)
			s.decide(time.Minute, decisions...)
			in := softInput(runs.SoftLimits{Turns: 1})
			in.ParkAfter = 2 * time.Hour
			next := s.continued(in)
			again := setupLimits(t)
			result, _ := again.run(next)
			if result.Outcome != runs.OutcomeError || result.Code != runs.CodeLimitTurns || len(again.models) != 0 || len(again.calls) != 1 {
				t.Errorf("%+v after %d turns and the calls %+v", result, len(again.models), again.calls)
			}
		})
	}
}

// A run that is held asks in itself. The question has the number of a turn, and no part in their
// count.
func TestASoftLimitHolds(t *testing.T) {
	t.Parallel()
	s := setupLimits(t)
	s.decide(time.Minute, goesOn)
	in := softInput(runs.SoftLimits{Turns: 2})
	in.Hold, in.Limits.Turns = true, 3
	result, _ := s.run(in)
	if result.Code != runs.CodeLimitTurns || len(s.models) != 3 || len(s.asked) != 1 {
		t.Fatalf("%+v after %d turns and %d questions", result, len(s.models), len(s.asked))
	}
	if x := s.asked[0].Exceeded; x != (runs.ExceededLimit{Code: runs.CodeLimitTurns, Used: 2, Allowed: 3}) {
		t.Errorf("it asks %+v", x)
	}
	var steps []string
	for _, m := range s.models {
		steps = append(steps, m.ID)
	}
	if want := []string{"1/model", "2/model", "4/model"}; !slices.Equal(steps, want) || s.told[0].ID != "3/hold" || s.told[0].Interrupts.Exceeded == nil {
		t.Errorf("its turns are %q, and it is held with %+v", steps, s.told)
	}
	if c := s.calls[2]; c.ID != "3/held/0" || c.Name != "limit" || c.Place == nil {
		t.Errorf("the call of the question is %+v", c)
	}

	s = setupLimits(t)
	s.decide(time.Minute, stops)
	if result, _ := s.run(in); result.Code != runs.CodeLimitTurns || len(s.models) != 2 || result.Outcome != runs.OutcomeError {
		t.Errorf("%+v after %d turns", result, len(s.models))
	}
}

// Who lets a run go on may say how far.
func TestASoftLimitIsEdited(t *testing.T) {
	t.Parallel()
	s := setupLimits(t)
	edits := runs.Decision{CallID: "beyond", Kind: runs.DecisionEdit, Digest: "edit", Args: "other figures", Allowed: 170, Input: 71}
	s.decide(time.Minute, edits)
	in := s.continued(softInput(runs.SoftLimits{Tokens: 100}))
	again := setupLimits(t)
	again.decide(time.Minute, stops)
	in = again.continued(in)
	want := runs.ExceededLimit{Code: runs.CodeLimitTokens, Used: 180, Allowed: 250}
	if c := again.calls[0]; len(again.models) != 1 || !cmp.Equal(again.excesses(), []runs.ExceededLimit{want}) || c.Decision == nil || c.Decision.Args != "other figures" || !c.Opens.Edits {
		t.Errorf("after %d turns it asks %+v, behind the call %+v", len(again.models), again.excesses(), c)
	}
	if got := in.Resume.Spent.Allowed.Tokens; got != 170 {
		t.Errorf("it goes on with %d tokens allowed", got)
	}
}

// A held run that is parked, and one that continues as new, know what was used and how far they may
// go.
func TestASoftLimitIsCarriedOn(t *testing.T) {
	t.Parallel()
	s := setupLimits(t)
	in := softInput(runs.SoftLimits{Tokens: 100})
	in.Hold, in.ParkAfter = true, time.Minute
	s.env.ExecuteWorkflow(runs.TypeRun, in)
	var parked runs.ParkedInput
	continuedAs(t, s.env.GetWorkflowError(), runs.TypeParked, &parked)
	next := unpark(t, parked, time.Second, func(w *fixture) {
		w.update(runs.UpdateDecide, runs.Decide{Decisions: []runs.Decision{goesOn}}, make(chan any, 1))
	})
	again := setupLimits(t)
	again.env.SetContinueAsNewSuggested(true)
	next = again.continued(next)
	if p := next.Progress; len(again.models) != 0 || p.Spent.Turns != 2 || p.Spent.Allowed.Tokens != 220 {
		t.Fatalf("it goes on with %+v after %d turns", next.Progress.Spent, len(again.models))
	}
	last := setupLimits(t)
	last.decide(time.Second, stops)
	result, _ := last.run(next)
	if result.Code != runs.CodeLimitTokens || len(last.models) != 2 || !cmp.Equal(last.excesses(), []runs.ExceededLimit{{Code: runs.CodeLimitTokens, Used: 240, Allowed: 250}}) {
		t.Errorf("%+v after %d turns, and the questions %+v", result, len(last.models), last.excesses())
	}
}

// Each limit is asked about, in its units.
func TestSoftLimitsOfEveryKind(t *testing.T) {
	t.Parallel()
	for code, soft := range map[string]runs.SoftLimits{
		runs.CodeLimitTokens: {Tokens: 60}, runs.CodeLimitCost: {Cost: 700}, runs.CodeLimitTurns: {Turns: 1}, runs.CodeLimitDuration: {Duration: time.Minute},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := setupLimits(t)
			spends := s.model
			s.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
				a, err := spends(in)
				cost := int64(700)
				a.Usage.Cost = &cost
				return a, err
			}
			s.decide(time.Minute, stops)
			in := softInput(soft)
			in.Progress = &runs.Progress{Execution: "e", Turn: 1, Positions: runs.Positions{Main: 1}, Budget: runs.Budget{Deadline: s.env.Now().Add(time.Hour)}}
			want := runs.ExceededLimit{Code: code, Used: 120, Allowed: 180} // what is used up is not passed
			switch code {
			case runs.CodeLimitCost:
				want.Used, want.Allowed = 1400, 2100
			case runs.CodeLimitTurns:
				want.Used, want.Allowed = 1, 2
			case runs.CodeLimitDuration:
				in.Progress.Deadline = s.env.Now().Add(time.Hour - 2*time.Minute)
			}
			in.Hold = true
			if result, _ := s.run(in); result.Code != code || len(s.asked) != 1 {
				t.Fatalf("%+v, asked %+v", result, s.asked)
			}
			got := s.asked[0].Exceeded
			if code == runs.CodeLimitDuration { // the clock goes on
				over := time.Duration(got.Used) - 2*time.Minute
				if over < 0 || over > time.Minute || got.Allowed-got.Used != int64(time.Minute) {
					t.Errorf("it asks %+v", got)
				}
				return
			}
			if got != want {
				t.Errorf("it asks %+v, want %+v", got, want)
			}
			if priced := code == runs.CodeLimitCost; s.models[0].Priced != priced {
				t.Errorf("that models have prices is required: %t", s.models[0].Priced)
			}
		})
	}
}

// A program goes on behind the question in the run that has the answer, and counts on. That it may
// not go on is its step's failure.
func TestAProgramPassesASoftLimit(t *testing.T) {
	t.Parallel()
	var failed *workflows.StepError
	var done int
	w := setupPrograms(t, workflows.Programs{"p": func(ctx workflow.Context, a *workflows.Agent) error {
		for ; ; done++ {
			if err := a.Do(ctx, agents.Step{Name: "work", Agent: &agents.AgentStep{}}); err != nil {
				errors.As(err, &failed)
				return err
			}
		}
	}})
	s := &limitFixture{heldFixture: &heldFixture{fixture: w}}
	s.ask()
	var seq uint64
	w.advance = func(in runs.Advance) (runs.Advanced, error) {
		seq += 10
		next := runs.Advanced{Seq: seq, Cursor: in.Position.Cursor}
		if !in.Resumes && in.Position.Event.Kind == pipeline.EventBegun {
			next.Active = &runs.ActiveStep{AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: input.Limits}, Place: runs.StepPlace{Path: "work", Name: "work", Inline: true}}
		} else if !in.Resumes && in.Position.Event.Failure != nil {
			next.Failed = in.Position.Event.Failure
		}
		return next, nil
	}
	w.model = func(in runs.ModelCall) (runs.ModelAnswer, error) { return says(in.After + 1), nil }
	w.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Seq: in.After + 2, Opened: in.After + 1}, nil
	}
	s.decide(time.Minute, goesOn)
	s.decide(2*time.Minute, stops)
	in := softInput(runs.SoftLimits{Turns: 2})
	in.Program = "p"
	result, _ := w.run(in)
	if result.Code != runs.CodeLimitTurns || done != 4 || failed == nil || failed.Code != result.Code {
		t.Errorf("%+v after %d steps: %v", result, done, failed)
	}
	if want := []runs.ExceededLimit{{Code: runs.CodeLimitTurns, Used: 2, Allowed: 4}, {Code: runs.CodeLimitTurns, Used: 4, Allowed: 6}}; !cmp.Equal(s.excesses(), want) || len(w.finished) != 3 {
		t.Errorf("it asks %+v, and its runs end with %+v", s.excesses(), w.finished)
	}
}

// What was used counts in the run that brings results of the client's tools, and not in one that is
// about something new.
func TestWhatWasSpentBelongsToItsInput(t *testing.T) {
	t.Parallel()
	spent := &runs.Spent{Turns: 2, Tokens: 120, Duration: 10 * time.Minute}
	for verdict, atOnce := range map[runs.DecisionKind]bool{runs.DecisionToolResult: true, runs.DecisionAbandon: false} {
		s := setupLimits(t)
		s.decide(time.Minute, goesOn)
		in := softInput(runs.SoftLimits{Tokens: 100})
		in.Hold, in.Limits.Tokens = true, 130
		waiting := runs.Interrupt{Call: runs.Call{ID: "theirs", Client: true}, Decision: &runs.Decision{CallID: "theirs", Kind: verdict}}
		in.Resume = &runs.Interrupts{RunID: "r0", MessageID: "m0", Calls: []runs.Interrupt{waiting}, Spent: spent}
		result, _ := s.run(in)
		if len(s.asked) != 1 || result.Code != runs.CodeLimitTokens {
			t.Errorf("%s: %+v after the questions %+v", verdict, result, s.excesses())
			continue
		}
		first := s.asked[0]
		if asks := first.Beginning != (runs.Beginning{}); asks != atOnce || first.Exceeded.Used != 120 || (len(s.models) == 1) != atOnce {
			t.Errorf("%s: it asks %+v", verdict, first)
		}
	}
}
