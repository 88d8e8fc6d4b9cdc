package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// asksTwice returns a tool that ends with a question until two were answered. It notes its calls.
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

func answers(question int) runs.Decision {
	return runs.Decision{CallID: "x", Kind: runs.DecisionAnswer, Question: question, Digest: fmt.Sprint("d", question), Input: uint64(70 + question)}
}

// A run whose tool asks ends with the question; the one that goes on makes the call anew, with the
// record of the question and what was decided. Only an answer to the question that waits counts.
func TestAToolAsks(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	w := setup(t)
	w.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(10, "x"), nil }
	w.tool = asksTwice(&calls)
	told := make(chan any, 2)
	w.env.RegisterDelayedCallback(func() {
		wrong := answers(1)
		wrong.Kind = runs.DecisionApprove
		all := []runs.Decision{approves("x"), wrong, answers(2), answers(0), answers(1), answers(1)}
		w.update(runs.UpdateDecide, runs.Decide{Decisions: all}, told)
	}, time.Minute)
	next := w.continued(input)
	unknown, taken := runs.DecisionResult{Error: runs.ErrorUnknownCall}, answers(1)
	want := runs.Decided{Results: []runs.DecisionResult{unknown, unknown, unknown, unknown, {Settled: true}, {Recorded: &taken, Settled: true}}}
	if got := <-told; !cmp.Equal(got, any(want)) {
		t.Errorf("it is answered with %+v", got)
	}
	if end := w.finished[0]; end.Outcome != runs.OutcomeInterrupt || len(end.Interrupts.Calls) != 1 || *end.Interrupts.Calls[0].Asked != (runs.Question{Seq: 21, Number: 1}) {
		t.Errorf("the run is finished with %+v", end)
	}

	again := setup(t)
	again.tool = asksTwice(&calls)
	again.env.RegisterDelayedCallback(func() {
		again.update(runs.UpdateDecide, runs.Decide{Decisions: []runs.Decision{answers(1), answers(2)}}, told)
	}, time.Minute)
	last := again.continued(next)
	if got := <-told; !cmp.Equal(got, any(runs.Decided{Results: []runs.DecisionResult{unknown, {Settled: true}}})) {
		t.Errorf("it is answered with %+v", got)
	}
	end := setup(t)
	end.tool, end.model = asksTwice(&calls), func(runs.ModelCall) (runs.ModelAnswer, error) { return says(30), nil }
	if result, _ := end.run(last); result.Outcome != runs.OutcomeSuccess || len(calls) != 3 || len(end.models) != 1 {
		t.Fatalf("%+v after %d calls", result, len(calls))
	}
	for i, want := range []uint64{0, 21, 22} {
		c := calls[i]
		if c.Question != want || (c.Decision == nil) != (i == 0) || i > 0 && (c.Decision.Question != i || c.CallID != "x") {
			t.Errorf("call %d is %+v", i, c)
		}
	}
}

// Time is over for a question as for an approval: the tool is told.
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
	d := next.Resume.Calls[0].Decision
	if d.Kind != runs.DecisionExpire || d.Question != 1 || w.env.Now().Sub(begun) < 24*time.Hour || next.Continues != input.Run.ID {
		t.Errorf("it goes on with %+v after %s", d, w.env.Now().Sub(begun))
	}
	var told []runs.NotificationEvent
	for _, n := range w.notices {
		told = append(told, n.Event)
	}
	if !slices.Contains(told, runs.EventOpened) {
		t.Errorf("people are told %v", told)
	}
}

// A run that is held asks as often as its tool does, in the same turn.
func TestAToolAsksInAHeldRun(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	h := setupHeld(t)
	h.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
		if in.Turn == 1 {
			return says(10, "x"), nil
		}
		return says(30), nil
	}
	h.tool = asksTwice(&calls)
	h.decide(time.Minute, answers(1))
	h.decide(2*time.Minute, answers(1), answers(2))
	result, finish := h.run(heldInput())
	if result.Outcome != runs.OutcomeSuccess || finish.Interrupts != nil || len(h.models) != 2 || h.models[1].ID != "2/model" {
		t.Errorf("%+v, finished with %+v after %d turns", result, finish, len(h.models))
	}
	if len(h.told) != 2 || h.told[0].ID != "1/hold" || h.told[1].ID != "1/hold-1" {
		t.Errorf("readers were told %+v", h.told)
	}
	steps := []string{"1/tools/0", "1/held/0", "1/held-1/0"}
	for i, c := range calls {
		if c.ID != steps[i] || i > 0 && (c.Decision == nil || c.Decision.Question != i) {
			t.Errorf("call %d is %+v", i, c)
		}
	}
}

// A run that only answers what the one before it has asked holds as well, and its first turn is
// still to come.
func TestAnAnswerIsHeld(t *testing.T) {
	t.Parallel()
	var calls []runs.ToolCall
	h := setupHeld(t)
	h.model = func(runs.ModelCall) (runs.ModelAnswer, error) { return says(30), nil }
	h.tool = asksTwice(&calls)
	calls = make([]runs.ToolCall, 1) // the one before
	first := answers(1)
	in := heldInput()
	in.Resume = &runs.Interrupts{MessageID: "m", RunID: "before", Calls: []runs.Interrupt{{
		Call: runs.Call{ID: "x", Tool: "tool"}, Asked: &runs.Question{Seq: 21, Number: 1}, Decision: &first,
	}}}
	h.decide(time.Minute, answers(2))
	result, _ := h.run(in)
	if result.Outcome != runs.OutcomeSuccess || len(h.models) != 1 || h.models[0].ID != "1/model" || h.models[0].Turn != 1 {
		t.Errorf("%+v after %+v", result, h.models)
	}
	if len(h.told) != 1 || h.told[0].ID != "0/hold-1" || len(calls) != 3 || calls[2].ID != "0/held-1/0" {
		t.Errorf("readers were told %+v, the calls are %+v", h.told, calls)
	}
}

// As many tools may ask as a thread can wait for.
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
		t.Errorf("the run ended with %+v", result)
	}
}
