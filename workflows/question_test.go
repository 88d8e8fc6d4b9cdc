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

func answerTo(question int) runs.Decision {
	return runs.Decision{CallID: "x", Kind: runs.DecisionAnswer, Question: question, Digest: fmt.Sprint("d", question), Input: uint64(70 + question)}
}

// TestToolQuestion: a run whose tool asks a question ends with an interrupt. The next run makes the
// call again, with the record of the question and the decision. Only an answer to the open question
// counts.
func TestToolQuestion(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	f := setup(t)
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10, "x"), nil }
	f.tool = toolAskingTwice(&calls)
	results := make(chan any, 2)
	f.env.RegisterDelayedCallback(func() {
		wrong := answerTo(1)
		wrong.Kind = runs.DecisionApprove
		all := []runs.Decision{approvalOf("x"), wrong, answerTo(2), answerTo(0), answerTo(1), answerTo(1)}
		f.update(runs.UpdateDecide, runs.DecideRequest{Decisions: all}, results)
	}, time.Minute)
	next := f.runUntilContinued(input)
	unknown, taken := runs.DecisionResult{Error: runs.ErrorUnknownCall}, answerTo(1)
	want := runs.DecideResult{Results: []runs.DecisionResult{unknown, unknown, unknown, unknown, {Settled: true}, {Recorded: &taken, Settled: true}}}
	if got := <-results; !cmp.Equal(got, any(want)) {
		t.Errorf("results of the decisions: got %+v, want %+v", got, want)
	}
	if end := f.finished[0]; end.Outcome != runs.OutcomeInterrupt || len(end.Interrupts.Items) != 1 || *end.Interrupts.Items[0].Question != (runs.Question{Seq: 21, Number: 1}) {
		t.Errorf("end of the run: got %+v", end)
	}

	again := setup(t)
	again.tool = toolAskingTwice(&calls)
	again.env.RegisterDelayedCallback(func() {
		again.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{answerTo(1), answerTo(2)}}, results)
	}, time.Minute)
	last := again.runUntilContinued(next)
	if got := <-results; !cmp.Equal(got, any(runs.DecideResult{Results: []runs.DecisionResult{unknown, {Settled: true}}})) {
		t.Errorf("results of the decisions in the next run: got %+v", got)
	}
	end := setup(t)
	end.tool, end.model = toolAskingTwice(&calls), func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
	if result, _ := end.run(last); result.Outcome != runs.OutcomeSuccess || len(calls) != 3 || len(end.modelCalls) != 1 {
		t.Fatalf("got %+v after %d calls", result, len(calls))
	}
	for i, want := range []uint64{0, 21, 22} {
		c := calls[i]
		if c.QuestionRecord != want || (c.Decision == nil) != (i == 0) || i > 0 && (c.Decision.Question != i || c.CallID != "x") {
			t.Errorf("call %d: got %+v", i, c)
		}
	}
}

// TestQuestionExpires: a question expires like an approval, and the tool receives the expiry.
func TestQuestionExpires(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	f := setup(t)
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10, "x"), nil }
	f.tool = toolAskingTwice(&calls)
	begun := f.env.Now()
	in := input
	in.ParkAfter = 48 * time.Hour
	next := f.runUntilContinued(in)
	d := next.Resume.Items[0].Decision
	if d.Kind != runs.DecisionExpire || d.Question != 1 || f.env.Now().Sub(begun) < 24*time.Hour || next.Continues != input.Run.ID {
		t.Errorf("decision of the next run: got %+v after %s", d, f.env.Now().Sub(begun))
	}
	var sent []runs.NotificationEvent
	for _, n := range f.notifications {
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
	f := setupHeld(t)
	f.model, f.tool = modelCallingOnce, toolAskingTwice(&calls)
	f.decide(time.Minute, answerTo(1))
	f.decide(2*time.Minute, answerTo(1), answerTo(2))
	result, finish := f.run(heldInput())
	if result.Outcome != runs.OutcomeSuccess || finish.Interrupts != nil || len(f.modelCalls) != 2 || f.modelCalls[1].ID != "2/model" {
		t.Errorf("got %+v and the end %+v after %d turns", result, finish, len(f.modelCalls))
	}
	if len(f.announced) != 2 || f.announced[0].ID != "1/hold" || f.announced[1].ID != "1/hold-1" {
		t.Errorf("announced interrupts: got %+v", f.announced)
	}
	steps := []string{"1/tools/0", "1/held/0", "1/held-1/0"}
	for i, c := range calls {
		if c.ID != steps[i] || i > 0 && (c.Decision == nil || c.Decision.Question != i) {
			t.Errorf("call %d: got %+v", i, c)
		}
	}
}

// TestHeldRunResumesQuestion: a run that only resolves the interrupts of the previous run is held as well,
// before its first turn.
func TestHeldRunResumesQuestion(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	f := setupHeld(t)
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(30), nil }
	f.tool = toolAskingTwice(&calls)
	calls = make([]runs.ToolCall, 1) // the call of the previous run
	first := answerTo(1)
	in := heldInput()
	in.Resume = &runs.Interrupts{MessageID: "m", RunID: "before", Items: []runs.Interrupt{{
		Call: runs.Call{ID: "x", Tool: "tool"}, Question: &runs.Question{Seq: 21, Number: 1}, Decision: &first,
	}}}
	f.decide(time.Minute, answerTo(2))
	result, _ := f.run(in)
	if result.Outcome != runs.OutcomeSuccess || len(f.modelCalls) != 1 || f.modelCalls[0].ID != "1/model" || f.modelCalls[0].Turn != 1 {
		t.Errorf("got %+v after the model calls %+v", result, f.modelCalls)
	}
	if len(f.announced) != 1 || f.announced[0].ID != "0/hold-1" || len(calls) != 3 || calls[2].ID != "0/held-1/0" {
		t.Errorf("got the announced interrupts %+v and the calls %+v", f.announced, calls)
	}
}

// TestQuestionsAreBounded: more questions than a thread can wait for end the run.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	f := setup(t)
	in := input
	in.Limits.ParallelTools = 40
	var ids []string
	for i := range runs.MaxInterrupts + 1 {
		ids = append(ids, fmt.Sprint("x", i))
	}
	f.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return modelAnswer(10, ids...), nil }
	f.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeInterrupt, Opened: 11, Seq: 12, Question: &runs.AskedQuestion{CallID: in.CallID, Tool: "tool", Number: 1}}, nil
	}
	if result, _ := f.run(in); result.Code != runs.CodeLimitParallelTools {
		t.Errorf("got %+v", result)
	}
}
