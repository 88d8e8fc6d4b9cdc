package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// asksTwice returns a tool that asks a question until two are answered. It records its calls.
func asksTwice(calls *[]runs.ToolCall) func(runs.ToolCall) (runs.ToolAnswer, error) {
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

// callsInFirstTurn is a model that calls the tool x in the first turn, and ends in the second.
func callsInFirstTurn(in runs.ModelCall) (runs.ModelAnswer, error) {
	if in.Turn == 1 {
		return says(10, "x"), nil
	}
	return says(30), nil
}

func answers(question int) runs.Decision {
	return runs.Decision{CallID: "x", Kind: runs.DecisionAnswer, Question: question, Digest: fmt.Sprint("d", question), Input: uint64(70 + question)}
}

// TestAToolAsks: a run whose tool asks a question ends with an interrupt. The next run makes the
// call again, with the record of the question and the decision. Only an answer to the open question
// counts.
func TestAToolAsks(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(10, "x"), nil }
	w.tool = asksTwice(&calls)
	results := make(chan any, 2)
	w.env.RegisterDelayedCallback(func() {
		wrong := answers(1)
		wrong.Kind = runs.DecisionApprove
		all := []runs.Decision{approves("x"), wrong, answers(2), answers(0), answers(1), answers(1)}
		w.update(runs.UpdateDecide, runs.DecideRequest{Decisions: all}, results)
	}, time.Minute)
	next := w.continued(input)
	unknown, taken := runs.DecisionResult{Error: runs.ErrorUnknownCall}, answers(1)
	want := runs.DecideResult{Results: []runs.DecisionResult{unknown, unknown, unknown, unknown, {Settled: true}, {Recorded: &taken, Settled: true}}}
	if got := <-results; !cmp.Equal(got, any(want)) {
		t.Errorf("results of the decisions: got %+v, want %+v", got, want)
	}
	if end := w.finished[0]; end.Outcome != runs.OutcomeInterrupt || len(end.Interrupts.Items) != 1 || *end.Interrupts.Items[0].Question != (runs.Question{Seq: 21, Number: 1}) {
		t.Errorf("end of the run: got %+v", end)
	}

	again := setup(t)
	again.tool = asksTwice(&calls)
	again.env.RegisterDelayedCallback(func() {
		again.update(runs.UpdateDecide, runs.DecideRequest{Decisions: []runs.Decision{answers(1), answers(2)}}, results)
	}, time.Minute)
	last := again.continued(next)
	if got := <-results; !cmp.Equal(got, any(runs.DecideResult{Results: []runs.DecisionResult{unknown, {Settled: true}}})) {
		t.Errorf("results of the decisions in the next run: got %+v", got)
	}
	end := setup(t)
	end.tool, end.model = asksTwice(&calls), func(runs.ModelCall) (runs.ModelAnswer, error) { return says(30), nil }
	if result, _ := end.run(last); result.Outcome != runs.OutcomeSuccess || len(calls) != 3 || len(end.models) != 1 {
		t.Fatalf("got %+v after %d calls", result, len(calls))
	}
	for i, want := range []uint64{0, 21, 22} {
		c := calls[i]
		if c.QuestionRecord != want || (c.Decision == nil) != (i == 0) || i > 0 && (c.Decision.Question != i || c.CallID != "x") {
			t.Errorf("call %d: got %+v", i, c)
		}
	}
}

// TestAQuestionExpires: a question expires like an approval, and the tool receives the expiry.
func TestAQuestionExpires(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(10, "x"), nil }
	w.tool = asksTwice(&calls)
	begun := w.env.Now()
	in := input
	in.ParkAfter = 48 * time.Hour
	next := w.continued(in)
	d := next.Resume.Items[0].Decision
	if d.Kind != runs.DecisionExpire || d.Question != 1 || w.env.Now().Sub(begun) < 24*time.Hour || next.Continues != input.Run.ID {
		t.Errorf("decision of the next run: got %+v after %s", d, w.env.Now().Sub(begun))
	}
	var sent []runs.NotificationEvent
	for _, n := range w.notices {
		sent = append(sent, n.Event)
	}
	if !slices.Contains(sent, runs.EventOpened) {
		t.Errorf("notifications: got %v, want one opened", sent)
	}
}

// TestAToolAsksInAHeldRun: in a held run a tool may ask several times in the same turn.
func TestAToolAsksInAHeldRun(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	h := setupHeld(t)
	h.model, h.tool = callsInFirstTurn, asksTwice(&calls)
	h.decide(time.Minute, answers(1))
	h.decide(2*time.Minute, answers(1), answers(2))
	result, finish := h.run(heldInput())
	if result.Outcome != runs.OutcomeSuccess || finish.Interrupts != nil || len(h.models) != 2 || h.models[1].ID != "2/model" {
		t.Errorf("got %+v and the end %+v after %d turns", result, finish, len(h.models))
	}
	if len(h.announced) != 2 || h.announced[0].ID != "1/hold" || h.announced[1].ID != "1/hold-1" {
		t.Errorf("announced interrupts: got %+v", h.announced)
	}
	steps := []string{"1/tools/0", "1/held/0", "1/held-1/0"}
	for i, c := range calls {
		if c.ID != steps[i] || i > 0 && (c.Decision == nil || c.Decision.Question != i) {
			t.Errorf("call %d: got %+v", i, c)
		}
	}
}

// TestAnAnswerIsHeld: a run that only resolves the interrupts of the previous run is held as well,
// before its first turn.
func TestAnAnswerIsHeld(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	h := setupHeld(t)
	h.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(30), nil }
	h.tool = asksTwice(&calls)
	calls = make([]runs.ToolCall, 1) // the call of the previous run
	first := answers(1)
	in := heldInput()
	in.Resume = &runs.Interrupts{MessageID: "m", RunID: "before", Items: []runs.Interrupt{{
		Call: runs.Call{ID: "x", Tool: "tool"}, Question: &runs.Question{Seq: 21, Number: 1}, Decision: &first,
	}}}
	h.decide(time.Minute, answers(2))
	result, _ := h.run(in)
	if result.Outcome != runs.OutcomeSuccess || len(h.models) != 1 || h.models[0].ID != "1/model" || h.models[0].Turn != 1 {
		t.Errorf("got %+v after the model calls %+v", result, h.models)
	}
	if len(h.announced) != 1 || h.announced[0].ID != "0/hold-1" || len(calls) != 3 || calls[2].ID != "0/held-1/0" {
		t.Errorf("got the announced interrupts %+v and the calls %+v", h.announced, calls)
	}
}

// TestTooManyToolsAsk: more questions than a thread can wait for end the run.
func TestTooManyToolsAsk(t *testing.T) {
	t.Parallel()
	w := setup(t)
	in := input
	in.Limits.ParallelTools = 40
	var ids []string
	for i := range runs.MaxInterrupts + 1 {
		ids = append(ids, fmt.Sprint("x", i))
	}
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(10, ids...), nil }
	w.tool = func(in runs.ToolCall) (runs.ToolAnswer, error) {
		return runs.ToolAnswer{Outcome: runs.OutcomeInterrupt, Opened: 11, Seq: 12, Question: &runs.AskedQuestion{CallID: in.CallID, Tool: "tool", Number: 1}}, nil
	}
	if result, _ := w.run(in); result.Code != runs.CodeLimitParallelTools {
		t.Errorf("got %+v", result)
	}
}
