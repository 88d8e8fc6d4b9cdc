package stream_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// writeSubagents writes a turn that hands work to two concurrent subagents. One of them needs a
// second attempt.
func (f *projectionFixture) writeSubagents() {
	f.begin(run, user, "")
	c1, c2 := agui.ToolCall{ID: "c1", Name: "f", Arguments: `{}`}, agui.ToolCall{ID: "c2", Name: "f", Arguments: `{}`}
	f.after = f.writeFinishedAttempt(f.place("1/model"), resultWith(assistantMessage("m1", "", c1, c2)),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: `{}`}, &agui.ToolCallEnd{ToolCallID: "c1"},
		&agui.ToolCallStart{ToolCallID: "c2", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c2", Delta: `{}`}, &agui.ToolCallEnd{ToolCallID: "c2"})
	f.open("1/tools", nil, &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "tools"})
	f.after = f.last()
	a, b := f.subagent(0, "sub1"), f.subagent(1, "sub2")
	f.attempt(a, textStart("m2"), textContent("m2", "On"))
	second := f.attempt(a, textStart("m2"), textContent("m2", "One"))
	other := f.attempt(b, textStart("m3"), textContent("m3", "Two"))
	f.emit(second, textContent("m2", "."))
	f.finish(second, resultWith(assistantMessage("m2", "One.")), textEnd("m2"))
	f.finish(other, resultWith(assistantMessage("m3", "Two.")), textContent("m3", "."), textEnd("m3"))
	f.endSubagent(1, "sub2", "r2", "c2")
	f.endSubagent(0, "sub1", "r1", "c1")
	f.open("2/model", nil, &agui.StepFinished{StepName: "tools"}, &agui.StepStarted{StepName: "model"})
	f.after = f.last()
	f.after = f.writeFinishedAttempt(f.place("2/model"), resultWith(assistantMessage("m4", "Both.")), textStart("m4"), textContent("m4", "Both."), textEnd("m4"))
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
}

// subagent announces a subagent in a slot, and returns the place of its first step.
func (f *projectionFixture) subagent(slot int, id string) stream.Place {
	f.t.Helper()
	p := f.lane(stream.LaneMain.Subagent(slot), id+"/1/model")
	p.Since, p.Subagent = f.after, id
	seq, err := f.log.OpenStep(f.ctx, p, nil, &agui.SubagentStarted{SubagentRunID: id, Name: "f"}, &agui.StepStarted{StepName: "model"})
	if err != nil {
		f.t.Fatal(err)
	}
	f.step()
	p.After = seq
	return p
}

// endSubagent ends the subagent in a slot, with the result of its call.
func (f *projectionFixture) endSubagent(slot int, id, message, call string) {
	f.t.Helper()
	shown, result := toolResult(message, call, "done")
	f.finish(f.attempt(f.lane(stream.LaneMain.Tool(slot), "1/tools/"+call)), resultWith(result),
		&agui.StepFinished{StepName: "model", SubagentRunID: id}, &agui.SubagentFinished{SubagentRunID: id}, shown)
}

// withoutReaders returns a story without readers.
func withoutReaders(t *testing.T) *projectionFixture {
	t.Helper()
	return &projectionFixture{t: t, ctx: t.Context(), log: streamtest.Open(t), run: run, step: func() {}}
}

// TestMessagesOfSubagentsAreInOrder: messages of concurrent agents have the order of their
// beginnings in the conversation, as clients have them.
func TestMessagesOfSubagentsAreInOrder(t *testing.T) {
	t.Parallel()
	f := withoutReaders(t)
	f.begin(run, user, "")
	f.after = f.last()
	p := f.subagent(0, "sub1")
	first, second := f.attempt(p, textStart("m2"), textContent("m2", "On")), f.subagent(1, "sub2")
	f.finish(f.attempt(second, textStart("m3")), resultWith(assistantMessage("m3", "Two.")), textEnd("m3"))
	f.finish(first, resultWith(assistantMessage("m2", "One.")), textEnd("m2"))
	r, err := snapshots(f.log).Latest(f.ctx, thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Messages() {
		got = append(got, m.ID+" "+m.SubagentRunID)
	}
	if want := []string{"u1 ", "m2 sub1", "m3 sub2"}; !slices.Equal(got, want) {
		t.Errorf("conversation: got %q, want %q", got, want)
	}
}

// TestSlotIsReused: a slot may be used by several subagents in turn. The second begins where
// the first has ended, and a late attempt of the first may not write.
func TestSlotIsReused(t *testing.T) {
	t.Parallel()
	f := withoutReaders(t)
	f.begin(run, user, "")
	f.after = f.last()
	p := f.subagent(0, "sub1")
	fenced := f.attempt(p, textStart("m2"))
	f.finish(f.attempt(p, textStart("m2")), resultWith(assistantMessage("m2", "One.")), textEnd("m2"))
	f.after = f.last()
	next := f.subagent(0, "sub2")
	if step, err := f.log.Announced(f.ctx, next); err != nil || step != next.Step {
		t.Errorf("announced step: got %q (%v), want %q", step, err, next.Step)
	}
	if err := fenced.Emit(f.ctx, textContent("m2", "late")); err == nil {
		_, err = fenced.Finish(f.ctx, resultWith())
		if err == nil {
			t.Fatal("error of the fenced lane = nil, want an error")
		}
	}
	f.finish(f.attempt(next, textStart("m3")), resultWith(assistantMessage("m3", "Two.")), textEnd("m3"))
	f.after = f.last()
	unannounced := next
	unannounced.Since = f.after
	if step, err := f.log.Announced(f.ctx, unannounced); err != nil || step != "" {
		t.Errorf("announced step of a slot that is not used again: got %q (%v), want none", step, err)
	}
}

// TestSupersedeSubagents: all lanes of a subagent whose workflow died are superseded.
func TestSupersedeSubagents(t *testing.T) {
	t.Parallel()
	f := withoutReaders(t)
	f.begin(run, user, "")
	f.after = f.last()
	p := f.subagent(0, "sub1")
	speaks := f.attempt(p, textStart("m2"), textContent("m2", "Wait"))
	works := f.attempt(f.lane(p.Lane.Tool(3), "sub1/1/tools/3"))
	concurrent := f.attempt(f.lane(stream.LaneMain.Tool(1), "1/tools/1"))
	over := f.lane(p.Lane, "")
	over.Since = f.after
	if err := f.log.SupersedeSubagents(f.ctx, over); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]*stream.Attempt{"its model call": speaks, "its tool call": works} {
		if _, err := a.Finish(f.ctx, resultWith()); err == nil {
			t.Errorf("Finish of %s = nil, want an error", name)
		}
	}
	if _, err := concurrent.Finish(f.ctx, resultWith()); err != nil {
		t.Errorf("tool call of the run's own agent: got %v", err)
	}
}
