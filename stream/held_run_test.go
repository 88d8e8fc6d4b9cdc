package stream_test

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// tellHeld writes a run that is held for an interrupt and a client tool call, which are resolved
// one after the other.
func (s *projectionFixture) tellHeld() {
	s.begin(run, user, "")
	ask, pick := agui.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":1}`}, agui.ToolCall{ID: "c2", Name: "pick", Arguments: `{}`}
	s.after = s.live(s.place("1/model"), says(assistant("m1", "", ask, pick)),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: ask.Arguments}, &agui.ToolCallEnd{ToolCallID: "c1"},
		&agui.ToolCallStart{ToolCallID: "c2", ToolCallName: "pick", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c2", Delta: `{}`}, &agui.ToolCallEnd{ToolCallID: "c2"})
	events := must[[]agui.Event](s.t)(stream.HeldEvents([]agui.Interrupt{{ID: "i1", Reason: "tool_call", ToolCallID: "c1"}}, []string{"c2"}))
	s.open("1/hold", nil, append([]agui.Event{&agui.StepFinished{StepName: "model"}}, events...)...)
	s.after = s.last()
	s.waits("i1", "c2")
	s.open("1/held", nil, &agui.StepStarted{StepName: "tools"})
	s.after = s.last()
	done := func(lane int, id, call, verdict string) {
		e, m := answer(id, call, "sunny")
		a := s.attempt(s.lane(stream.LaneMain.Tool(lane), "1/held/"+call))
		s.finish(a, &stream.Result{Messages: []agui.Message{m}, Decided: &stream.Decided{CallID: call, Kind: verdict}}, e)
	}
	done(0, "r1", "c1", "approve")
	s.waits("", "c2")
	done(1, "r2", "c2", "result")
	s.waits("", "")
	s.open("2/model", nil, &agui.StepFinished{StepName: "tools"}, &agui.StepStarted{StepName: "model"})
	s.after = s.last()
	s.after = s.live(s.place("2/model"), says(assistant("m2", "Warm.")), start("m2"), text("m2", "Warm."), end("m2"))
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
}

// waits checks the interrupts and client tool calls that are open in the log.
func (s *projectionFixture) waits(question, call string) {
	s.t.Helper()
	r := must[*snapshot.Snapshot](s.t)(snapshots(s.log).Latest(s.ctx, thread, 0))
	var id, client string
	if len(r.Interrupts) == 1 {
		id = r.Interrupts[0].ID
	}
	if len(r.ClientCalls) == 1 {
		client = r.ClientCalls[0]
	}
	if id != question || client != call || len(r.Interrupts) > 1 || len(r.ClientCalls) > 1 {
		s.t.Errorf("open: got the interrupts %+v and the calls %q, want %q and %q", r.Interrupts, r.ClientCalls, question, call)
	}
}
