package stream_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

func init() { stories["two subagents"] = (*projectionFixture).delegate }

// delegate writes a turn that hands work to two concurrent subagents. One of them needs a second
// attempt.
func (s *projectionFixture) delegate() {
	s.begin(run, user, "")
	c1, c2 := agui.ToolCall{ID: "c1", Name: "f", Arguments: `{}`}, agui.ToolCall{ID: "c2", Name: "f", Arguments: `{}`}
	s.after = s.live(s.place("1/model"), says(assistant("m1", "", c1, c2)),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: `{}`}, &agui.ToolCallEnd{ToolCallID: "c1"},
		&agui.ToolCallStart{ToolCallID: "c2", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c2", Delta: `{}`}, &agui.ToolCallEnd{ToolCallID: "c2"})
	s.open("1/tools", nil, &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "tools"})
	s.after = s.last()
	a, b := s.subagent(0, "sub1"), s.subagent(1, "sub2")
	s.attempt(a, start("m2"), text("m2", "On"))
	second := s.attempt(a, start("m2"), text("m2", "One"))
	other := s.attempt(b, start("m3"), text("m3", "Two"))
	s.emit(second, text("m2", "."))
	s.finish(second, says(assistant("m2", "One.")), end("m2"))
	s.finish(other, says(assistant("m3", "Two.")), text("m3", "."), end("m3"))
	s.leave(1, "sub2", "r2", "c2")
	s.leave(0, "sub1", "r1", "c1")
	s.open("2/model", nil, &agui.StepFinished{StepName: "tools"}, &agui.StepStarted{StepName: "model"})
	s.after = s.last()
	s.after = s.live(s.place("2/model"), says(assistant("m4", "Both.")), start("m4"), text("m4", "Both."), end("m4"))
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
}

// subagent announces a subagent in a slot, and returns the place of its first step.
func (s *projectionFixture) subagent(slot int, id string) stream.Place {
	s.t.Helper()
	p := s.lane(stream.LaneMain.Subagent(slot), id+"/1/model")
	p.Since, p.Subagent = s.after, id
	seq, err := s.log.OpenStep(s.ctx, p, nil, &agui.SubagentStarted{SubagentRunID: id, Name: "f"}, &agui.StepStarted{StepName: "model"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.step()
	p.After = seq
	return p
}

// leave ends the subagent in a slot, with the result of its call.
func (s *projectionFixture) leave(slot int, id, message, call string) {
	s.t.Helper()
	shown, result := answer(message, call, "done")
	s.finish(s.attempt(s.lane(stream.LaneMain.Tool(slot), "1/tools/"+call)), says(result),
		&agui.StepFinished{StepName: "model", SubagentRunID: id}, &agui.SubagentFinished{SubagentRunID: id}, shown)
}

// quiet returns a story without readers.
func quiet(t *testing.T) *projectionFixture {
	t.Helper()
	return &projectionFixture{t: t, ctx: t.Context(), log: streamtest.Open(t), run: run, step: func() {}}
}

// TestMessagesOfSubagentsStandWhereTheyBegan: messages of concurrent agents have the order of their
// beginnings in the conversation, as clients have them.
func TestMessagesOfSubagentsStandWhereTheyBegan(t *testing.T) {
	t.Parallel()
	s := quiet(t)
	s.begin(run, user, "")
	s.after = s.last()
	p := s.subagent(0, "sub1")
	first, second := s.attempt(p, start("m2"), text("m2", "On")), s.subagent(1, "sub2")
	s.finish(s.attempt(second, start("m3")), says(assistant("m3", "Two.")), end("m3"))
	s.finish(first, says(assistant("m2", "One.")), end("m2"))
	r, err := snapshots(s.log).Latest(s.ctx, thread, 0)
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

// TestASlotIsUsedAgain: a slot may be used by several subagents in turn. The second begins where
// the first has ended, and a late attempt of the first may not write.
func TestASlotIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := quiet(t)
	s.begin(run, user, "")
	s.after = s.last()
	p := s.subagent(0, "sub1")
	zombie := s.attempt(p, start("m2"))
	s.finish(s.attempt(p, start("m2")), says(assistant("m2", "One.")), end("m2"))
	s.after = s.last()
	next := s.subagent(0, "sub2")
	if step, err := s.log.Announced(s.ctx, next); err != nil || step != next.Step {
		t.Errorf("announced step: got %q (%v)", step, err)
	}
	if err := zombie.Emit(s.ctx, text("m2", "late")); err == nil {
		if _, err = zombie.Finish(s.ctx, says()); err == nil {
			t.Error("an attempt of the first subagent wrote to the lane of the second")
		}
	}
	s.finish(s.attempt(next, start("m3")), says(assistant("m3", "Two.")), end("m3"))
	s.after = s.last()
	unannounced := next
	unannounced.Since = s.after
	if step, err := s.log.Announced(s.ctx, unannounced); err != nil || step != "" {
		t.Errorf("announced step of a slot that is not used again: got %q (%v), want none", step, err)
	}
}

// TestSupersedeSubagents: all lanes of a subagent whose workflow died are superseded.
func TestSupersedeSubagents(t *testing.T) {
	t.Parallel()
	s := quiet(t)
	s.begin(run, user, "")
	s.after = s.last()
	p := s.subagent(0, "sub1")
	speaks := s.attempt(p, start("m2"), text("m2", "Wait"))
	works := s.attempt(s.lane(p.Lane.Tool(3), "sub1/1/tools/3"))
	concurrent := s.attempt(s.lane(stream.LaneMain.Tool(1), "1/tools/1"))
	over := s.lane(p.Lane, "")
	over.Since = s.after
	if err := s.log.SupersedeSubagents(s.ctx, over); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]*stream.Attempt{"its model call": speaks, "its tool call": works} {
		if _, err := a.Finish(s.ctx, says()); err == nil {
			t.Errorf("%s is not fenced", name)
		}
	}
	if _, err := concurrent.Finish(s.ctx, says()); err != nil {
		t.Errorf("tool call of the run's own agent: got %v", err)
	}
}
