package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/workflows"
)

// asksTwice is a tool that ends with a question until two were answered. It notes its calls.
func asksTwice(calls *[]workflows.ToolCall) func(workflows.ToolCall) (workflows.ToolAnswer, error) {
	return func(in workflows.ToolCall) (workflows.ToolAnswer, error) {
		*calls = append(*calls, in)
		n, answer := len(*calls), workflows.ToolAnswer{Outcome: workflows.OutcomeSuccess, Opened: in.After + 1, Seq: uint64(20 + len(*calls))}
		if n <= 2 {
			answer.Outcome = workflows.OutcomeInterrupt
			answer.Question = &workflows.AskedQuestion{CallID: "x", Tool: "tool", Number: n, Expires: 24 * time.Hour}
		}
		return answer, nil
	}
}

func answers(question int) workflows.Decision {
	return workflows.Decision{CallID: "x", Kind: workflows.DecisionAnswer, Question: question, Digest: fmt.Sprint("d", question), Input: uint64(70 + question)}
}

// A run whose tool asks ends with the question; the one that goes on makes the call anew, with the record of the
// question and what was decided. Only an answer to the question that waits counts.
func TestAToolAsks(t *testing.T) {
	t.Parallel()
	var calls []workflows.ToolCall
	w := newWorld(t)
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { return says(10, "x"), nil }
	w.tool = asksTwice(&calls)
	told := make(chan any, 2)
	w.env.RegisterDelayedCallback(func() {
		wrong := answers(1)
		wrong.Kind = workflows.DecisionApprove
		all := []workflows.Decision{approves("x"), wrong, answers(2), answers(0), answers(1), answers(1)}
		w.update(workflows.UpdateDecide, workflows.Decide{Decisions: all}, told)
	}, time.Minute)
	next := w.continued(input)
	unknown, taken := workflows.DecisionResult{Error: workflows.ErrorUnknownCall}, answers(1)
	want := workflows.Decided{Results: []workflows.DecisionResult{unknown, unknown, unknown, unknown, {Settled: true}, {Recorded: &taken, Settled: true}}}
	if got := <-told; !cmp.Equal(got, any(want)) {
		t.Errorf("it is answered with %+v", got)
	}
	if end := w.finished[0]; end.Outcome != workflows.OutcomeInterrupt || len(end.Interrupts.Calls) != 1 || *end.Interrupts.Calls[0].Asked != (workflows.Question{Seq: 21, Number: 1}) {
		t.Errorf("the run is finished with %+v", end)
	}

	again := newWorld(t)
	again.tool = asksTwice(&calls)
	again.env.RegisterDelayedCallback(func() {
		again.update(workflows.UpdateDecide, workflows.Decide{Decisions: []workflows.Decision{answers(1), answers(2)}}, told)
	}, time.Minute)
	last := again.continued(next)
	if got := <-told; !cmp.Equal(got, any(workflows.Decided{Results: []workflows.DecisionResult{unknown, {Settled: true}}})) {
		t.Errorf("it is answered with %+v", got)
	}
	end := newWorld(t)
	end.tool, end.model = asksTwice(&calls), func(workflows.ModelCall) (workflows.ModelAnswer, error) { return says(30), nil }
	if result, _ := end.run(last); result.Outcome != workflows.OutcomeSuccess || len(calls) != 3 || len(end.models) != 1 {
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
	var calls []workflows.ToolCall
	w := newWorld(t)
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { return says(10, "x"), nil }
	w.tool = asksTwice(&calls)
	begun := w.env.Now()
	in := input
	in.ParkAfter = 48 * time.Hour
	next := w.continued(in)
	d := next.Resume.Calls[0].Decision
	if d.Kind != workflows.DecisionExpire || d.Question != 1 || w.env.Now().Sub(begun) < 24*time.Hour || next.Continues != input.Run.ID {
		t.Errorf("it goes on with %+v after %s", d, w.env.Now().Sub(begun))
	}
	var told []workflows.NotificationEvent
	for _, n := range w.notices {
		told = append(told, n.Event)
	}
	if !slices.Contains(told, workflows.EventOpened) {
		t.Errorf("people are told %v", told)
	}
}

// A run that is held asks as often as its tool does, in the same turn.
func TestAToolAsksInAHeldRun(t *testing.T) {
	t.Parallel()
	var calls []workflows.ToolCall
	h := newHolding(t)
	h.model = func(in workflows.ModelCall) (workflows.ModelAnswer, error) {
		if in.Turn == 1 {
			return says(10, "x"), nil
		}
		return says(30), nil
	}
	h.tool = asksTwice(&calls)
	h.decide(time.Minute, answers(1))
	h.decide(2*time.Minute, answers(1), answers(2))
	result, finish := h.run(heldInput())
	if result.Outcome != workflows.OutcomeSuccess || finish.Interrupts != nil || len(h.models) != 2 || h.models[1].ID != "2/model" {
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

// A run that only answers what the one before it has asked holds as well, and its first turn is still to come.
func TestAnAnswerIsHeld(t *testing.T) {
	t.Parallel()
	var calls []workflows.ToolCall
	h := newHolding(t)
	h.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { return says(30), nil }
	h.tool = asksTwice(&calls)
	calls = make([]workflows.ToolCall, 1) // the one before
	first := answers(1)
	in := heldInput()
	in.Resume = &workflows.Interrupts{MessageID: "m", RunID: "before", Calls: []workflows.Interrupt{{
		Call: workflows.Call{ID: "x", Tool: "tool"}, Asked: &workflows.Question{Seq: 21, Number: 1}, Decision: &first,
	}}}
	h.decide(time.Minute, answers(2))
	result, _ := h.run(in)
	if result.Outcome != workflows.OutcomeSuccess || len(h.models) != 1 || h.models[0].ID != "1/model" || h.models[0].Turn != 1 {
		t.Errorf("%+v after %+v", result, h.models)
	}
	if len(h.told) != 1 || h.told[0].ID != "0/hold-1" || len(calls) != 3 || calls[2].ID != "0/held-1/0" {
		t.Errorf("readers were told %+v, the calls are %+v", h.told, calls)
	}
}

// As many tools may ask as a thread can wait for.
func TestTooManyToolsAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := input
	in.Limits.ParallelTools = 40
	var ids []string
	for i := range workflows.MaxInterrupts + 1 {
		ids = append(ids, fmt.Sprint("x", i))
	}
	w.model = func(workflows.ModelCall) (workflows.ModelAnswer, error) { return says(10, ids...), nil }
	w.tool = func(in workflows.ToolCall) (workflows.ToolAnswer, error) {
		return workflows.ToolAnswer{Outcome: workflows.OutcomeInterrupt, Opened: 11, Seq: 12, Question: &workflows.AskedQuestion{CallID: in.CallID, Tool: "tool", Number: 1}}, nil
	}
	if result, _ := w.run(in); result.Code != workflows.CodeLimitParallelTools {
		t.Errorf("the run ended with %+v", result)
	}
}
