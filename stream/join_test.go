package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// begin writes the opening of a run whose input adds one message and, if given, a state.
func (f *projectionFixture) begin(r stream.Run, message agui.Message, state string) {
	f.t.Helper()
	f.accept(r, must[*snapshot.Snapshot](f.t)(snapshots(f.log).Latest(f.ctx, r.Thread, 0)).Accept(snapshot.Claim{Messages: []agui.Message{message}, History: snapshot.HistoryAppend}), state)
}

// accept writes the opening of a run with an accepted conversation.
func (f *projectionFixture) accept(r stream.Run, accepted stream.Acceptance, state string) {
	f.t.Helper()
	in := &stream.Input{Accepted: accepted}
	if state != "" {
		in.Input.State = json.RawMessage(state)
	}
	proposal := must[stream.Proposal](f.t)(f.log.ProposeInput(f.ctx, r, [32]byte{1}, in))
	accepted.Tail = nil
	f.run, f.after = r, 0
	f.open("1/model", stream.Opening{RunID: r.ID, Input: proposal.Seq, ProtocolVersion: "1.0", Accepted: accepted},
		&agui.RunStarted{ThreadID: thread.ID, RunID: r.ID, ProtocolVersion: "1.0"}, &agui.StepStarted{StepName: "model"})
}

// seal ends the run.
func (f *projectionFixture) seal(e agui.Event) {
	f.t.Helper()
	if _, _, err := f.log.Seal(f.ctx, f.place("finish"), e); err != nil {
		f.t.Fatal(err)
	}
	f.step()
}

// supersede ends the lane of a place, with or without its output.
func (f *projectionFixture) supersede(p stream.Place, keep bool) {
	f.t.Helper()
	supersede := f.log.Supersede
	if keep {
		supersede = f.log.SupersedeKeepingMessages
	}
	if err := supersede(f.ctx, p); err != nil {
		f.t.Fatal(err)
	}
	f.step()
}

// lane returns the place of a step on a lane other than main.
func (f *projectionFixture) lane(lane stream.Lane, step string) stream.Place {
	return stream.Place{Run: f.run, Lane: lane, Step: step, Execution: "e1"}
}

// attempt begins an attempt and emits events, one record each.
func (f *projectionFixture) attempt(p stream.Place, events ...agui.Event) *stream.Attempt {
	f.t.Helper()
	a := f.beginAttempt(p)
	f.t.Cleanup(a.Close)
	f.emit(a, events...)
	return a
}

// emit emits events, each in a record of its own.
func (f *projectionFixture) emit(a *stream.Attempt, events ...agui.Event) {
	f.t.Helper()
	for _, e := range events {
		before := f.last()
		if err := a.Emit(f.ctx, e); err != nil {
			f.t.Fatal(err)
		}
		f.await(before)
	}
}

// finish finishes an attempt, and returns the sequence of its done record.
func (f *projectionFixture) finish(a *stream.Attempt, result *stream.Result, events ...agui.Event) uint64 {
	f.t.Helper()
	seq := must[uint64](f.t)(a.Finish(f.ctx, result, events...))
	f.step()
	return seq
}

// assistantMessage returns a message of the assistant.
func assistantMessage(id, content string, calls ...agui.ToolCall) agui.Message {
	m := agui.Message{ID: id, Role: agui.RoleAssistant, ToolCalls: calls}
	if content != "" {
		m.Content = agui.TextContent(content)
	}
	return m
}

// toolResult returns a tool's result, as an event and as a message.
func toolResult(id, call, content string) (agui.Event, agui.Message) {
	return &agui.ToolCallResult{MessageID: id, ToolCallID: call, Content: agui.TextContent(content), Role: agui.RoleTool},
		agui.Message{ID: id, Role: agui.RoleTool, ToolCallID: call, Content: agui.TextContent(content)}
}

// resultWith returns the result of an attempt with messages.
func resultWith(messages ...agui.Message) *stream.Result { return &stream.Result{Messages: messages} }

// callTools writes a turn that calls two tools in parallel. One of them takes two attempts, and
// both change the state.
func (f *projectionFixture) callTools(m string) {
	f.t.Helper()
	c1, c2 := agui.ToolCall{ID: m + "c1", Name: "f", Arguments: `{"a":1}`}, agui.ToolCall{ID: m + "c2", Name: "g", Arguments: `{}`}
	f.after = f.writeFinishedAttempt(f.place("1/model"), resultWith(assistantMessage(m, "Both.", c1, c2)),
		textStart(m), textContent(m, "Bo"), textContent(m, "th."), textEnd(m),
		&agui.ToolCallStart{ToolCallID: c1.ID, ToolCallName: "f", ParentMessageID: m}, &agui.ToolCallStart{ToolCallID: c2.ID, ToolCallName: "g", ParentMessageID: m},
		&agui.ToolCallArgs{ToolCallID: c1.ID, Delta: `{"a":`}, &agui.ToolCallArgs{ToolCallID: c2.ID, Delta: `{}`}, &agui.ToolCallArgs{ToolCallID: c1.ID, Delta: `1}`},
		&agui.ToolCallEnd{ToolCallID: c2.ID}, &agui.ToolCallEnd{ToolCallID: c1.ID})
	f.open("1/tools", nil, &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "tools"})
	f.after = f.last()
	set := func(n int) agui.Event {
		return &agui.StateDelta{Delta: json.RawMessage(fmt.Sprintf(`[{"op":"add","path":"/%s","value":%d}]`, m, n))}
	}
	t0, t1 := f.lane(stream.LaneMain.Tool(0), "1/tools/0"), f.lane(stream.LaneMain.Tool(1), "1/tools/1")
	f.attempt(t0, set(1), &agui.Custom{Name: "progress", Value: json.RawMessage("1")})
	b := f.attempt(t1, &agui.Custom{Name: "progress", Value: json.RawMessage("2")})
	a := f.attempt(t0, set(3))
	result := func(id, call string) (agui.Event, *stream.Result) {
		e, message := toolResult(id, call, "sunny")
		return e, resultWith(message)
	}
	e2, r2 := result(m+"r2", c2.ID)
	f.finish(b, r2, e2)
	e1, r1 := result(m+"r1", c1.ID)
	f.finish(a, r1, set(2), e1)
	f.open("2/model", nil, &agui.StepFinished{StepName: "tools"}, &agui.StepStarted{StepName: "model"})
	f.after = f.last()
}

// joinedRuns are runs that readers join, each with another end.
var joinedRuns = map[string]func(s *projectionFixture){
	"attempts die":  (*projectionFixture).writeRun,
	"begin records": func(s *projectionFixture) { s.begins = true; s.writeRun() },
	"held":          (*projectionFixture).writeHeldRun,
	"two subagents": (*projectionFixture).writeSubagents,
	"parallel tools, an error": func(s *projectionFixture) {
		s.begin(run, user, `{"given":true}`)
		s.callTools("m1")
		s.attempt(s.place("2/model"), textStart("m2"), textContent("m2", "It is"))
		s.supersede(s.place("2/model"), false)
		s.seal(&agui.RunError{Code: "internal", Message: "no"})
	},
	"cancelled": func(s *projectionFixture) {
		s.begin(run, user, "")
		s.attempt(s.place("1/model"), &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
			&agui.ReasoningMessageContent{MessageID: "x1", Delta: "Let"}, &agui.ReasoningMessageContent{MessageID: "x1", Delta: " me"},
			&agui.ReasoningMessageEnd{MessageID: "x1"}, &agui.ReasoningEnd{MessageID: "x1"}, textStart("m1"), textContent("m1", "It "), textContent("m1", "is"))
		s.supersede(s.place("1/model"), true)
		s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}})
	},
	"an attempt that got in between": func(s *projectionFixture) {
		s.begin(run, user, "")
		s.attempt(s.place("1/model"), &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
			&agui.ReasoningMessageContent{MessageID: "x1", Delta: "Let"}, textStart("m1"), textContent("m1", "It "),
			&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: `{"`})
		s.supersede(s.place("1/model"), false)
		s.attempt(s.lane(stream.LaneMain.Tool(0), "1/tools/0"), &agui.Custom{Name: "progress", Value: json.RawMessage("1")})
		s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	},
	"a steering input": func(s *projectionFixture) {
		s.begin(run, user, "")
		s.after = s.writeFinishedAttempt(s.place("1/model"), resultWith(assistantMessage("m1", "It is.")), textStart("m1"), textContent("m1", "It is."), textEnd("m1"))
		aside := agui.Message{ID: "s1", Role: agui.RoleUser, Content: agui.TextContent("In Rome!")}
		in := &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "s1", Message: &aside}}}}
		p := must[stream.Proposal](s.t)(s.log.ProposeInput(s.ctx, s.run, aside.Digest(), in))
		note := stream.Steering{Inputs: []uint64{p.Seq, p.Seq}} // the same input twice
		s.open("2/model", note, &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "model"})
		s.after = s.last()
		s.attempt(s.place("2/model"), textStart("m2"), textContent("m2", "Wa"))
		s.after = s.writeFinishedAttempt(s.place("2/model"), resultWith(assistantMessage("m2", "Warm.")), textStart("m2"), textContent("m2", "Warm."), textEnd("m2"))
		s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
		messages := must[*snapshot.Snapshot](s.t)(snapshots(s.log).Latest(s.ctx, thread, 0)).Messages()
		if len(messages) != 4 || messages[2].ID != "s1" {
			s.t.Errorf("conversation: got %v, want 4 messages with s1 in third place", messages)
		}
	},
	"a model with activities": func(s *projectionFixture) {
		s.begin(run, user, "")
		shows := func(id string, n int) agui.Event {
			return &agui.ActivitySnapshot{MessageID: id, ActivityType: "search", Content: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
		}
		thinks := []agui.Event{&agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"}, &agui.ReasoningMessageContent{MessageID: "x1", Delta: "Let"}}
		s.attempt(s.place("1/model"), append(slices.Clone(thinks), shows("a1", 1), &agui.ReasoningMessageEnd{MessageID: "x1"}, &agui.ReasoningEnd{MessageID: "x1"}, textStart("m1"), textContent("m1", "It "))...)
		a := s.attempt(s.place("1/model"), append(slices.Clone(thinks), shows("a1", 2), shows("a2", 1),
			&agui.ActivityDelta{MessageID: "a1", ActivityType: "search", Patch: json.RawMessage(`[{"op":"replace","path":"/n","value":3}]`)},
			&agui.ReasoningMessageEnd{MessageID: "x1"}, &agui.ReasoningEnd{MessageID: "x1"}, textStart("m1"), textContent("m1", "It "), shows("a1", 4), textContent("m1", "is."))...)
		place := func(id string) agui.Message {
			return agui.Message{ID: id, Role: agui.RoleActivity, Content: agui.ObjectContent(json.RawMessage("{}"))}
		}
		thought := agui.Message{ID: "x1", Role: agui.RoleReasoning, Content: agui.TextContent("Let")}
		s.finish(a, resultWith(thought, place("a1"), place("a2"), assistantMessage("m1", "It is.")), textEnd("m1"))
		s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	},
	"subagents": func(s *projectionFixture) {
		s.begin(run, user, "")
		s.after = s.writeFinishedAttempt(s.place("1/model"), resultWith(assistantMessage("m1", "Ask.")), textStart("m1"), textContent("m1", "Ask."), textEnd("m1"))
		sub := s.lane("s0", "sub/1")
		sub.After = must[uint64](s.t)(s.log.OpenStep(s.ctx, sub, nil, &agui.SubagentStarted{SubagentRunID: "A", Name: "a"},
			&agui.SubagentStarted{SubagentRunID: "B", Name: "b", ParentSubagentRunID: "A"}, &agui.SubagentFinished{SubagentRunID: "A"},
			&agui.StepStarted{StepName: "model", SubagentRunID: "B"}))
		s.step()
		tagged := func() []agui.Event {
			return []agui.Event{
				&agui.TextMessageStart{MessageID: "m2", Role: agui.RoleAssistant, SubagentRunID: "B"},
				&agui.TextMessageContent{MessageID: "m2", Delta: "fo", SubagentRunID: "B"}, &agui.TextMessageContent{MessageID: "m2", Delta: "und", SubagentRunID: "B"},
			}
		}
		s.attempt(sub, tagged()...)
		a := s.attempt(sub, tagged()...)
		answer := assistantMessage("m2", "found")
		answer.SubagentRunID = "B"
		s.finish(a, resultWith(answer), textEnd("m2"), &agui.StepFinished{StepName: "model", SubagentRunID: "B"}, &agui.SubagentFinished{SubagentRunID: "B"})
		s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	},
}

// clientScreen is the messages and the state of a client.
type clientScreen struct {
	messages []agui.Message
	state    json.RawMessage
}

// applyFrames applies frames to a client with a message list, by the reference client's rules. The
// final healing snapshot is left out unless healed is set: a client must be right without it,
// except with an old list.
func applyFrames(t *testing.T, what string, with []agui.Message, frames []view.Frame, healed bool) clientScreen {
	t.Helper()
	var verifier agui.Verifier
	client := agui.NewReducer(with, json.RawMessage(`{"old":true}`))
	for i, f := range frames {
		e, err := agui.Decode(f.Event)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := verifier.Check(e); err != nil {
			t.Fatalf("%s: event %d of %d is refused: %v\n%s", what, i, len(frames), err, formatFrames(frames[:i+1]))
		}
		if f.Type == agui.EventMessagesSnapshot && i > 2 && i == len(frames)-2 && !healed {
			continue
		}
		if err := client.Apply(e); err != nil {
			t.Fatalf("%s: event %d: %v", what, i, err)
		}
	}
	// A retracted reasoning leaves an empty message, if the thread has no other reasoning: clients
	// cannot remove it.
	messages := slices.DeleteFunc(client.Messages(), func(m agui.Message) bool {
		return m.Role == agui.RoleReasoning && m.Content.Text() == ""
	})
	return clientScreen{messages, client.State()}
}

// checkCursors checks that a prelude has a cursor at its last event only, and that every later
// event has one.
func checkCursors(t *testing.T, what string, frames []view.Frame) {
	t.Helper()
	last := ""
	for i, f := range frames {
		if f.Cursor.IsZero() && f.Type == agui.EventStateDelta {
			t.Fatalf("%s: event %d repeats a change, want only the state snapshot to have it\n%s", what, i, formatFrames(frames))
		}
		switch c := f.Cursor.String(); {
		case c == "" && last != "", c != "" && c <= last:
			t.Fatalf("%s: event %d has the cursor %q after %q, want a later one\n%s", what, i, c, last, formatFrames(frames))
		default:
			last = c
		}
	}
	if last == "" {
		t.Errorf("%s: last is empty, want a value", what)
	}
}

// wantScreenOfLog checks that a client has the messages and the state of the log.
func wantScreenOfLog(t *testing.T, what string, got clientScreen, log *snapshot.Snapshot, frames []view.Frame) {
	t.Helper()
	wantSameMessages(t, what, withoutErrors(got.messages), withoutErrors(log.Messages()), frames)
	if a, b := canonicalJSON(t, got.state), canonicalJSON(t, log.State); a != b {
		t.Fatalf("%s: state: got %s, want %s\n%s", what, a, b, formatFrames(frames))
	}
}

// withoutErrors returns messages without the errors of tool results, which TOOL_CALL_RESULT does
// not have.
func withoutErrors(messages []agui.Message) []agui.Message {
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].Error = ""
	}
	return messages
}

// canonicalJSON returns JSON with sorted members and fixed white space.
func canonicalJSON(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return asJSON(t, v)
}

// dropStaleReasoning leaves out the reasoning of an attempt that died while the client was away.
// Clients cannot remove it while the thread has no other reasoning.
func dropStaleReasoning(messages []agui.Message, log *snapshot.Snapshot) []agui.Message {
	reasons := func(m agui.Message) bool { return m.Role == agui.RoleReasoning }
	if slices.ContainsFunc(log.Messages(), reasons) {
		return messages
	}
	return slices.DeleteFunc(messages, reasons)
}

// concurrentReaders are readers of one log that join at any time.
type concurrentReaders struct {
	t        *testing.T
	ctx      context.Context
	follower *stream.Follower
	readOn   func(context.Context, *view.View) ([]view.Frame, error)

	late    chan struct{} // bounds the concurrent readers of a finished run
	readers sync.WaitGroup
	mu      sync.Mutex
	read    []shownEvents
}

// newConcurrentReaders returns readers of a log.
func newConcurrentReaders(t *testing.T, ctx context.Context, l *stream.Log) *concurrentReaders {
	t.Helper()
	return &concurrentReaders{t: t, ctx: ctx, follower: streamtest.Follow(t, l), readOn: readOn, late: make(chan struct{}, 8)}
}

// shownEvents is the events that a reader was shown, until its view ended.
type shownEvents struct {
	what          string
	messages      []agui.Message // the reader's messages when it joined
	before, after []view.Frame
	err           error
}

// all returns the events before and after the reader joined.
func (r shownEvents) all() []view.Frame { return slices.Concat(r.before, r.after) }

// send starts a reader that reads to the end. Its earlier events came from another view.
func (c *concurrentReaders) send(shownView *view.View, r shownEvents) {
	c.readers.Go(func() { c.take(shownView, r) })
}

// sendLate starts a reader of a finished run.
func (c *concurrentReaders) sendLate(shownView *view.View, r shownEvents) {
	c.late <- struct{}{}
	c.readers.Go(func() {
		defer func() { <-c.late }()
		c.take(shownView, r)
	})
}

// take reads a view to its end.
func (c *concurrentReaders) take(shownView *view.View, r shownEvents) {
	defer shownView.Close()
	r.after, r.err = c.readOn(c.ctx, shownView)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, r)
}

// wait returns the readings since the last call.
func (c *concurrentReaders) wait() []shownEvents {
	c.t.Helper()
	c.readers.Wait()
	read := c.read
	c.read = nil
	for _, r := range read {
		if !errors.Is(r.err, io.EOF) {
			c.t.Fatalf("%s: got the end %v, want EOF\n%s", r.what, r.err, formatFrames(r.all()))
		}
	}
	return read
}

// pollingReader is a reader that reads all available events after each record.
type pollingReader struct {
	view   *view.View
	frames []view.Frame
}

// poll reads all events up to a record.
func (h *pollingReader) poll(ctx context.Context, upTo uint64) {
	past := true
	for ctx.Err() == nil && (past || h.view.At() < upTo) {
		next := func() ([]view.Frame, error) { return h.view.Next(ctx, time.Second) }
		if past {
			next = func() ([]view.Frame, error) { return h.view.NextPast(ctx) }
		}
		frames, err := next()
		h.frames = append(h.frames, frames...)
		if err != nil {
			return
		}
		past = past && frames != nil
	}
}

// TestJoinAtEveryRecord: a reader may join at any record, with an empty list or with the list of a
// live reader. It ends with the conversation and the state of the log. A reader that disconnects
// after any event after the prelude, and reconnects at any time, continues exactly.
func TestJoinAtEveryRecord(t *testing.T) {
	t.Parallel()
	for name, tell := range joinedRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			c := newConcurrentReaders(t, ctx, l)
			live := &pollingReader{view: viewer(c.follower).Run(run, view.Options{})}
			defer live.view.Close()
			var joined []*pollingReader
			records := 0
			s := &projectionFixture{t: t, ctx: ctx, log: l, run: run}
			s.step = func() {
				records++
				live.poll(ctx, s.last())
				for i, h := range joined {
					h.poll(ctx, s.last())
					if records%3 != i%3 {
						continue
					}
					for k := range h.frames {
						if after := h.frames[k].Cursor; !after.IsZero() && (k+records)%4 == 0 {
							c.send(viewer(c.follower).Run(run, view.Options{After: &after}),
								shownEvents{what: fmt.Sprintf("reader %d, disconnected after event %d, back at record %d", i, k, records), before: h.frames[: k+1 : k+1]})
						}
					}
				}
				had := applyFrames(t, "live", []agui.Message{user}, live.frames, true).messages
				c.send(viewer(c.follower).Run(run, view.Options{Join: true}), shownEvents{what: fmt.Sprintf("joined at record %d", records), messages: had})
				if records%7 == 2 {
					h := &pollingReader{view: viewer(c.follower).Run(run, view.Options{Join: true})}
					t.Cleanup(h.view.Close)
					joined = append(joined, h)
				}
			}
			tell(s)
			log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
			wantSameMessages(t, "live reader", applyFrames(t, "live reader", []agui.Message{user}, live.frames, false).messages, log.Messages(), live.frames)

			first := c.wait()
			t.Logf("%d records, %d events live, %d readers", records, len(live.frames), len(first))
			for _, r := range first {
				checkCursors(t, r.what, r.all())
				wantScreenOfLog(t, r.what, applyFrames(t, r.what, nil, r.all(), false), log, r.all())
				wantScreenOfLog(t, r.what+", healed", applyFrames(t, r.what, nil, r.all(), true), log, r.all())
				if r.messages != nil {
					had := applyFrames(t, r.what, r.messages, r.all(), false)
					had.messages = dropStaleReasoning(had.messages, log)
					wantScreenOfLog(t, r.what+" with an old list", had, log, r.all())
				}
				last := r.all()[len(r.all())-1]
				mustEqual(t, r.what+": event", string(last.Event), string(live.frames[len(live.frames)-1].Event))
			}
			for i, r := range first {
				for k, f := range r.after {
					if after := f.Cursor; !after.IsZero() && (r.before == nil && i%2 == 0 || i%17 == 0) {
						c.sendLate(viewer(c.follower).Run(run, view.Options{After: &after}), shownEvents{
							what: fmt.Sprintf("%s, disconnected after event %d, back at the end", r.what, k), before: slices.Concat(r.before, r.after[:k+1]),
						})
					}
				}
			}
			second := c.wait()
			t.Logf("%d continuations", len(second))
			for _, r := range second {
				checkCursors(t, r.what, r.all())
				wantScreenOfLog(t, r.what, applyFrames(t, r.what, nil, r.all(), false), log, r.all())
			}
		})
	}
}

// TestPrelude: a reader that joins is shown complete messages in a snapshot, open messages from
// their start, and one cursor.
func TestPrelude(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	s := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	s.begin(run, user, `{"given":true}`)
	s.callTools("m1")
	a := s.attempt(s.place("2/model"), &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
		&agui.ReasoningMessageContent{MessageID: "x1", Delta: "h"}, &agui.ReasoningMessageContent{MessageID: "x1", Delta: "m"},
		&agui.ReasoningMessageEnd{MessageID: "x1"}, &agui.ReasoningEnd{MessageID: "x1"}, textStart("m2"), textContent("m2", "It "), textContent("m2", "is"))
	shownView := viewer(follower).Run(run, view.Options{Join: true})
	defer shownView.Close()
	prelude := must[[]view.Frame](t)(shownView.Next(ctx, time.Minute))
	want := []string{
		`{"type":"RUN_STARTED","threadId":"t/1 with.dots and *","runId":"r1","protocolVersion":"1.0"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u1","role":"user","content":"weather?"},{"id":"m1","role":"assistant","content":"Both.","toolCalls":[` +
			`{"id":"m1c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"m1c2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
			`{"id":"m1r2","role":"tool","toolCallId":"m1c2","content":"sunny"},{"id":"m1r1","role":"tool","toolCallId":"m1c1","content":"sunny"},{"id":"x1","role":"reasoning","content":""}]}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"given":true,"m1":2}}`,
		`{"type":"STEP_STARTED","stepName":"model"}`,
		`{"type":"REASONING_START","messageId":"x1"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"x1","role":"reasoning"}`,
		`{"type":"REASONING_MESSAGE_CONTENT","messageId":"x1","delta":"hm"}`,
		`{"type":"REASONING_MESSAGE_END","messageId":"x1"}`,
		`{"type":"REASONING_END","messageId":"x1"}`,
		`{"type":"TEXT_MESSAGE_START","messageId":"m2","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"It is"}`,
	}
	wantSameTexts(t, prelude, want)
	for i, f := range prelude {
		wantEqual(t, fmt.Sprintf("event %d has no cursor", i), f.Cursor.IsZero(), i < len(prelude)-1)
	}
	s.finish(a, resultWith(assistantMessage("m2", "It is so.")), textContent("m2", " so."), textEnd("m2"))
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	rest := must[[]view.Frame](t)(readToEnd(ctx, shownView))
	wantEqual(t, "last event but one", rest[len(rest)-2].Type, agui.EventMessagesSnapshot)

	ended := readAll(t, ctx, follower, view.Options{Join: true})
	mustEqual(t, "number of frames of an ended run", len(ended), 4)
	wantEqual(t, "last event of an ended run", ended[3].Type, agui.EventRunFinished)
	wantEqual(t, "last event but one of an ended run", ended[2].Type, agui.EventStateSnapshot)
	wantEqual(t, "last frame of an ended run has no cursor", ended[3].Cursor.IsZero(), false)
	again := readAll(t, ctx, follower, view.Options{After: &ended[3].Cursor})
	wantEqual(t, "number of frames after the last cursor", len(again), 0)
}

// wantSameTexts checks the events of frames.
func wantSameTexts(t *testing.T, frames []view.Frame, want []string) {
	t.Helper()
	var got []string
	for _, f := range frames {
		got = append(got, string(f.Event))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// readToEnd reads a view to its end, which is no error.
func readToEnd(ctx context.Context, v *view.View) ([]view.Frame, error) {
	frames, err := readOn(ctx, v)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return frames, err
}

// TestJoinBeforeFirstRecord: a reader that joins a run before its beginning is shown the run from
// its start, like a reader that did not send its input.
func TestJoinBeforeFirstRecord(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	shownView := viewer(streamtest.Follow(t, l)).Run(run, view.Options{Join: true, Generation: stream.Generation0})
	defer shownView.Close()
	if frames, err := shownView.Next(ctx, time.Millisecond); err != nil || frames != nil {
		t.Fatalf("read before the first record: got %v, %v, want nothing", frames, err)
	}
	f := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	f.writeRun()
	frames := must[[]view.Frame](t)(readToEnd(ctx, shownView))
	checkCursors(t, "joined early", frames)
	log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantScreenOfLog(t, "joined early", applyFrames(t, "joined early", nil, frames, false), log, frames)
	if frames[0].Type != agui.EventRunStarted || frames[1].Type != agui.EventMessagesSnapshot || frames[2].Type != agui.EventStateSnapshot {
		t.Errorf("prelude: want RUN_STARTED and both snapshots, got\n%s", formatFrames(frames))
	}
}

// TestCursorOfAnotherRun: a cursor belongs to one run. A cursor of another run is refused.
func TestCursorOfAnotherRun(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	s := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	s.writeRun()
	first := readAll(t, ctx, follower, view.Options{})
	s.begin(stream.Run{Thread: thread, ID: "r2"}, agui.Message{ID: "u2", Role: agui.RoleUser, Content: agui.TextContent("and now?")}, "")
	for _, f := range first {
		shownView := viewer(follower).Run(s.run, view.Options{After: &f.Cursor})
		if frames, err := shownView.Next(ctx, time.Second); !errors.Is(err, stream.ErrInvalidCursor) {
			t.Errorf("%s: got %v, %v, want ErrInvalidCursor", f.Cursor, frames, err)
		}
		shownView.Close()
	}
}

// TestCursorOfProposal: the position of a proposal is a valid cursor, although the proposal is not
// shown. It continues with the events of the log after it.
func TestCursorOfProposal(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	f := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	f.writeRun()
	proposal := must[stream.Proposal](t)(l.ProposeInput(ctx, stream.Run{Thread: thread, ID: "r2"}, [32]byte{2}, &stream.Input{}))
	first := l.CursorAt(1)
	want := readAll(t, ctx, follower, view.Options{})
	wantSameFrames(t, readAll(t, ctx, follower, view.Options{After: &first}), want)
	shownView := viewer(follower).Thread(thread, view.ThreadOptions{After: &first})
	defer shownView.Close()
	if frames, err := readToEnd(ctx, shownView); err != nil || len(frames) != len(want) {
		t.Errorf("thread: got %d events, %v, want %d", len(frames), err, len(want))
	}
	foreign := l.CursorAt(proposal.Seq)
	elsewhere := viewer(follower).Run(run, view.Options{After: &foreign})
	defer elsewhere.Close()
	if _, err := elsewhere.Next(ctx, time.Second); !errors.Is(err, stream.ErrInvalidCursor) {
		t.Errorf("proposal of another run: got %v, want ErrInvalidCursor", err)
	}
}
