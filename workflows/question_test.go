package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// toolAskingTwice returns a tool that asks a question until two are answered. It records its calls.
func toolAskingTwice(calls *[]runs.ToolCall) func(runs.ToolCall) (runs.ToolAnswer, error) {
	return func(in runs.ToolCall) (runs.ToolAnswer, error) {
		*calls = append(*calls, in)
		n, answer := len(*calls), runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: in.After + 1, Seq: uint64(20 + len(*calls))}
		if n <= 2 {
			answer.Outcome = runs.OutcomeInterrupt
			answer.Question = &runs.AskedQuestion{CallID: "x", Tool: "tool", Number: n, Expires: 24 * time.Hour}
		}
		return answer, nil
	}
}

// modelCallingOnce is a model that calls the tool x in the first turn, and ends in the second.
func modelCallingOnce(in runs.ModelCall) (runs.ModelAnswer, error) {
	if in.Turn == 1 {
		return modelAnswer(10, "x"), nil
	}
	return modelAnswer(30), nil
}

// answerTo returns the answer to one of the tool's questions.
func answerTo(question int) runs.Decision {
	return runs.Decision{CallID: "x", Kind: runs.DecisionAnswer, Question: question, Digest: fmt.Sprint("d", question), Proposal: uint64(70 + question)}
}

// TestToolQuestion: a run whose tool asks a question ends with an interrupt. The next run makes the
// call again, with the record of the question and the decision. Only an answer to the open question
// counts.
func TestToolQuestion(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10, "x"), nil }
	fixture.tool = toolAskingTwice(&calls)
	results := make(chan any, 2)
	fixture.env.RegisterDelayedCallback(func() {
		wrong := answerTo(1)
		wrong.Kind = runs.DecisionApprove
		all := []runs.Decision{approvalOf("x"), wrong, answerTo(2), answerTo(0), answerTo(1), answerTo(1)}
		fixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: all}, results)
	}, time.Minute)
	next := fixture.runUntilContinued(input)
	unknown, taken := runs.DecisionResult{Error: runs.ErrorUnknownCall}, answerTo(1)
	want := runs.DecideResult{Results: []runs.DecisionResult{unknown, unknown, unknown, unknown, {Resolved: true}, {Recorded: &taken, Resolved: true}}}
	if got := <-results; !cmp.Equal(got, any(want)) {
		t.Errorf("results of the decisions: got %+v, want %+v", got, want)
	}
	wantEqual(t, "end of the run: outcome", fixture.finished[0].Outcome, runs.OutcomeInterrupt)
	mustEqual(t, "end of the run: number of interrupts", len(fixture.finished[0].Interrupts.Items), 1)
	wantEqual(t, "question of the interrupt", *fixture.finished[0].Interrupts.Items[0].Question, runs.Question{Seq: 21, Number: 1})

	nextFixture := setup(t)
	nextFixture.tool = toolAskingTwice(&calls)
	nextFixture.env.RegisterDelayedCallback(func() {
		nextFixture.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{answerTo(1), answerTo(2)}}, results)
	}, time.Minute)
	last := nextFixture.runUntilContinued(next)
	got := <-results
	wantEqual[any](t, "results of the decisions in the next run", got, any(runs.DecideResult{Results: []runs.DecisionResult{unknown, {Resolved: true}}}))
	end := setup(t)
	end.tool, end.model = toolAskingTwice(&calls), func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
	result, _ := end.run(last)
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of calls", len(calls), 3)
	mustEqual(t, "number of model calls", len(end.modelCalls), 1)
	for i, want := range []uint64{0, 21, 22} {
		c := calls[i]
		wantEqual(t, fmt.Sprintf("call %d: question record", i), c.QuestionRecord, want)
		wantEqual(t, fmt.Sprintf("call %d has no decision", i), c.Decision == nil, i == 0)
		if i > 0 && (c.Decision.Question != i || c.CallID != "x") {
			t.Errorf("call %d: got the call %q with the decision %+v, want call x with the answer to question %d", i, c.CallID, c.Decision, i)
		}
	}
}

// TestQuestionExpires: a question expires like an approval, and the tool receives the expiry.
func TestQuestionExpires(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	fixture := setup(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10, "x"), nil }
	fixture.tool = toolAskingTwice(&calls)
	begun := fixture.env.Now()
	in := input
	in.ParkAfter = 48 * time.Hour
	next := fixture.runUntilContinued(in)
	d := next.Resume.Items[0].Decision
	wantEqual(t, "decision of the next run: kind", d.Kind, runs.DecisionExpire)
	wantEqual(t, "decision of the next run: question", d.Question, 1)
	if fixture.env.Now().Sub(begun) < 24*time.Hour {
		t.Errorf("time until the question expired = %v, want at least %v", fixture.env.Now().Sub(begun), 24*time.Hour)
	}
	wantEqual(t, "next run: continued run", next.Continues, input.Run.ID)
	var sent []runs.NotificationEvent
	for _, n := range fixture.notifications {
		sent = append(sent, n.Event)
	}
	if !slices.Contains(sent, runs.EventOpened) {
		t.Errorf("notifications: got %v, want one opened", sent)
	}
}

// TestToolQuestionInHeldRun: in a held run a tool may ask several times in the same turn.
func TestToolQuestionInHeldRun(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	fixture := setupHeld(t)
	fixture.model, fixture.tool = modelCallingOnce, toolAskingTwice(&calls)
	fixture.decide(time.Minute, answerTo(1))
	fixture.decide(2*time.Minute, answerTo(1), answerTo(2))
	result, finish := fixture.run(heldInput())
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if finish.Interrupts != nil {
		t.Errorf("end of the run: Interrupts = %+v, want nil", finish.Interrupts)
	}
	mustEqual(t, "number of model calls", len(fixture.modelCalls), 2)
	wantEqual(t, "ID of the second model call", fixture.modelCalls[1].ID, "2/model")
	mustEqual(t, "number of announcements", len(fixture.announced), 2)
	wantEqual(t, "ID of the first announcement", fixture.announced[0].ID, "1/hold")
	wantEqual(t, "ID of the second announcement", fixture.announced[1].ID, "1/hold-1")
	steps := []string{"1/tools/0", "1/held/0", "1/held-1/0"}
	for i, c := range calls {
		wantEqual(t, fmt.Sprintf("call %d: ID", i), c.ID, steps[i])
		if i > 0 && (c.Decision == nil || c.Decision.Question != i) {
			t.Errorf("call %d: got the call %q with the decision %+v, want call x with the answer to question %d", i, c.CallID, c.Decision, i)
		}
	}
}

// TestHeldRunResumesQuestion: a run that only resolves the interrupts of the previous run is held
// as well, before its first turn.
func TestHeldRunResumesQuestion(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	fixture := setupHeld(t)
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
	fixture.tool = toolAskingTwice(&calls)
	calls = make([]runs.ToolCall, 1) // the call of the previous run
	first := answerTo(1)
	in := heldInput()
	in.Resume = &runs.Interrupts{MessageID: "m", RunID: "before", Items: []runs.Interrupt{{
		Call: runs.Call{ID: "x", Tool: "tool"}, Question: &runs.Question{Seq: 21, Number: 1}, Decision: &first,
	}}}
	fixture.decide(time.Minute, answerTo(2))
	result, _ := fixture.run(in)
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of model calls", len(fixture.modelCalls), 1)
	wantEqual(t, "ID of the model call", fixture.modelCalls[0].ID, "1/model")
	wantEqual(t, "turn of the model call", fixture.modelCalls[0].Turn, 1)
	mustEqual(t, "number of announcements", len(fixture.announced), 1)
	wantEqual(t, "ID of the announcement", fixture.announced[0].ID, "0/hold-1")
	mustEqual(t, "number of calls", len(calls), 3)
	wantEqual(t, "ID of the third call", calls[2].ID, "0/held-1/0")
}

// TestQuestionsAreBounded: more questions than a thread can wait for end the run.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	fixture := setup(t)
	in := input
	in.Limits.ParallelTools = 40
	var ids []string
	for i := range runs.MaxInterrupts + 1 {
		ids = append(ids, fmt.Sprint("x", i))
	}
	fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10, ids...), nil }
	fixture.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeInterrupt, Opened: 11, Seq: 12, Question: &runs.AskedQuestion{CallID: in.CallID, Tool: "tool", Number: 1}}, nil
	}
	result, _ := fixture.run(in)
	wantEqual(t, "code", result.Code, runs.CodeLimitParallelTools)
}
