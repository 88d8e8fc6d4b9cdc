package stream_test

import (
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// writeHeldRun writes a run that is held for an interrupt and a client tool call, which are
// resolved one after the other.
func (f *projectionFixture) writeHeldRun() {
	f.begin(run, user, "")
	ask, pick := agui.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":1}`}, agui.ToolCall{ID: "c2", Name: "pick", Arguments: `{}`}
	f.after = f.writeFinishedAttempt(f.place("1/model"), resultWith(assistantMessage("m1", "", ask, pick)),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: ask.Arguments}, &agui.ToolCallEnd{ToolCallID: "c1"},
		&agui.ToolCallStart{ToolCallID: "c2", ToolCallName: "pick", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c2", Delta: `{}`}, &agui.ToolCallEnd{ToolCallID: "c2"})
	events := must[[]agui.Event](f.t)(stream.HeldEvents([]agui.Interrupt{{ID: "i1", Reason: "tool_call", ToolCallID: "c1"}}, []string{"c2"}))
	f.open("1/hold", nil, append([]agui.Event{&agui.StepFinished{StepName: "model"}}, events...)...)
	f.after = f.last()
	f.wantOpenCalls("i1", "c2")
	f.open("1/held", nil, &agui.StepStarted{StepName: "tools"})
	f.after = f.last()
	done := func(lane int, id, call, kind string) {
		e, m := toolResult(id, call, "sunny")
		a := f.attempt(f.lane(stream.LaneMain.Tool(lane), "1/held/"+call))
		f.finish(a, &stream.Result{Messages: []agui.Message{m}, Decided: &stream.Decided{CallID: call, Kind: kind}}, e)
	}
	done(0, "r1", "c1", "approve")
	f.wantOpenCalls("", "c2")
	done(1, "r2", "c2", "result")
	f.wantOpenCalls("", "")
	f.open("2/model", nil, &agui.StepFinished{StepName: "tools"}, &agui.StepStarted{StepName: "model"})
	f.after = f.last()
	f.after = f.writeFinishedAttempt(f.place("2/model"), resultWith(assistantMessage("m2", "Warm.")), textStart("m2"), textContent("m2", "Warm."), textEnd("m2"))
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
}

// wantOpenCalls checks the interrupts and client tool calls that are open in the log.
func (f *projectionFixture) wantOpenCalls(question, call string) {
	f.t.Helper()
	r := must[*snapshot.Snapshot](f.t)(snapshots(f.log).Latest(f.ctx, thread, 0))
	var id, client string
	if len(r.Interrupts) == 1 {
		id = r.Interrupts[0].ID
	}
	if len(r.ClientCalls) == 1 {
		client = r.ClientCalls[0]
	}
	if id != question || client != call || len(r.Interrupts) > 1 || len(r.ClientCalls) > 1 {
		f.t.Errorf("open: got the interrupts %+v and the calls %q, want %q and %q", r.Interrupts, r.ClientCalls, question, call)
	}
}
