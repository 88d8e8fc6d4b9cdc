package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// projectionFixture writes a run to a log, one event at a time. Attempts die on the way.
type projectionFixture struct {
	t     *testing.T
	ctx   context.Context
	log   *stream.Log
	run   stream.Run
	after uint64 // of the main lane
	step  func() // called after each record
	// begins makes one record of the opening of a step and the beginning of its first attempt. opening
	// is an opening that no attempt has written yet.
	begins  bool
	opening func(stream.Place) (*stream.Attempt, error)
}

// beginAttempt begins an attempt.
func (f *projectionFixture) beginAttempt(p stream.Place) *stream.Attempt {
	f.t.Helper()
	write := f.opening
	if f.opening = nil; write == nil {
		write = func(p stream.Place) (*stream.Attempt, error) {
			a, _, err := f.log.Begin(f.ctx, p)
			return a, err
		}
	}
	a := must[*stream.Attempt](f.t)(write(p))
	f.step()
	return a
}

// place returns a place of the main lane.
func (f *projectionFixture) place(step string) stream.Place {
	return stream.Place{Run: f.run, Lane: stream.LaneMain, Step: step, Execution: "e1", After: f.after}
}

// open opens a step.
func (f *projectionFixture) open(step string, note any, events ...agui.Event) {
	f.t.Helper()
	if f.begins && strings.HasSuffix(step, "/model") {
		f.opening = func(p stream.Place) (*stream.Attempt, error) {
			a, _, _, err := f.log.BeginStep(f.ctx, p, note, events...)
			return a, err
		}
		return
	}
	must[uint64](f.t)(f.log.OpenStep(f.ctx, f.place(step), note, events...))
	f.step()
}

// writeDeadAttempt writes the events of an attempt that does not finish.
func (f *projectionFixture) writeDeadAttempt(step string, events ...agui.Event) {
	f.t.Helper()
	a := f.beginAttempt(f.place(step))
	defer a.Close()
	for _, e := range events {
		before := f.last()
		if err := a.Emit(f.ctx, e); err != nil {
			f.t.Fatal(err)
		}
		f.await(before)
	}
}

// writeFinishedAttempt writes an attempt that finishes its step.
func (f *projectionFixture) writeFinishedAttempt(p stream.Place, result *stream.Result, events ...agui.Event) uint64 {
	f.t.Helper()
	a := f.beginAttempt(p)
	defer a.Close()
	for _, e := range events[:len(events)-1] {
		before := f.last()
		if err := a.Emit(f.ctx, e); err != nil {
			f.t.Fatal(err)
		}
		f.await(before)
	}
	seq := must[uint64](f.t)(a.Finish(f.ctx, result, events[len(events)-1]))
	f.step()
	return seq
}

// last and await make the sender write one frame per event: they wait for the record before the
// next event is emitted.
func (f *projectionFixture) last() uint64 {
	return must[*snapshot.Snapshot](f.t)(snapshots(f.log).Latest(f.ctx, thread, 0)).Seq
}

// await waits for a record after the given one.
func (f *projectionFixture) await(before uint64) {
	for f.last() == before {
		if f.ctx.Err() != nil {
			f.t.Fatal(f.ctx.Err())
		}
	}
	f.step()
}

// textStart returns the start of a text message.
func textStart(id string) agui.Event {
	return &agui.TextMessageStart{MessageID: id, Role: agui.RoleAssistant}
}

// textEnd returns the end of a text message.
func textEnd(id string) agui.Event { return &agui.TextMessageEnd{MessageID: id} }

var user = agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent("weather?")}

// writeRun writes a run in which attempts die in a text, in reasoning, in a step and a subagent of their
// own, in a tool call after a finished text, and before their first event.
func (f *projectionFixture) writeRun() {
	proposal := must[stream.Proposal](f.t)(f.log.ProposeInput(f.ctx, run, [32]byte{1}, &stream.Input{
		Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: user.ID, Message: &user}}},
	}))
	f.open("1/model", stream.Opening{RunID: run.ID, Input: proposal.Seq, ProtocolVersion: "1.0"},
		&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID, ProtocolVersion: "1.0"}, &agui.StepStarted{StepName: "model"})
	f.writeDeadAttempt("1/model", textStart("m1"), textContent("m1", "Hel"), textContent("m1", "lo th"))
	f.writeDeadAttempt("1/model")
	f.writeDeadAttempt("1/model", &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
		&agui.ReasoningMessageContent{MessageID: "x1", Delta: "hmm"})
	f.writeDeadAttempt("1/model", &agui.StepStarted{StepName: "search"}, &agui.SubagentStarted{SubagentRunID: "s1", Name: "scout"}, textStart("m1"))
	f.writeDeadAttempt("1/model", textStart("m1"), textContent("m1", "Let me look."), textEnd("m1"),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "weather", ParentMessageID: "m1"},
		&agui.ToolCallArgs{ToolCallID: "c1", Delta: `{"ci`})
	call := agui.ToolCall{ID: "c1", Name: "weather", Arguments: `{"city":"Rome"}`}
	f.after = f.writeFinishedAttempt(f.place("1/model"), &stream.Result{Messages: []agui.Message{
		{ID: "x1", Role: agui.RoleReasoning, Content: agui.TextContent("I should look")},
		{ID: "m1", Role: agui.RoleAssistant, Content: agui.TextContent("Looking."), ToolCalls: []agui.ToolCall{call}},
	}}, &agui.StepStarted{StepName: "search"}, &agui.StepFinished{StepName: "search"},
		&agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
		&agui.ReasoningMessageContent{MessageID: "x1", Delta: "I should look"}, &agui.ReasoningMessageEnd{MessageID: "x1"}, &agui.ReasoningEnd{MessageID: "x1"},
		textStart("m1"), textContent("m1", "Look"), textContent("m1", "ing."), textEnd("m1"),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "weather", ParentMessageID: "m1"},
		&agui.ToolCallArgs{ToolCallID: "c1", Delta: `{"city":`}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: `"Rome"}`},
		&agui.ToolCallEnd{ToolCallID: "c1"})
	f.open("1/tools", nil, &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "tools"})
	f.after = f.last()
	tool := stream.Place{Run: run, Lane: stream.LaneMain.Tool(0), Step: "1/tools/0", Execution: "e1"}
	f.writeFinishedAttempt(tool, &stream.Result{Messages: []agui.Message{{ID: "r1", Role: agui.RoleTool, ToolCallID: "c1", Content: agui.TextContent("sunny")}}},
		&agui.ToolCallResult{MessageID: "r1", ToolCallID: "c1", Content: agui.TextContent("sunny"), Role: agui.RoleTool})
	f.open("2/model", nil, &agui.StepFinished{StepName: "tools"}, &agui.StepStarted{StepName: "model"})
	f.writeDeadAttempt("2/model", textStart("m2"), textContent("m2", "It is"))
	f.after = f.writeFinishedAttempt(f.place("2/model"), &stream.Result{Messages: []agui.Message{{ID: "m2", Role: agui.RoleAssistant, Content: agui.TextContent("Sunny.")}}},
		textStart("m2"), textContent("m2", "Sun"), textContent("m2", "ny."), textEnd("m2"))
	if _, _, err := f.log.Seal(f.ctx, f.place("finish"), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		f.t.Fatal(err)
	}
	f.step()
}

// writeConcurrentRun writes a run in which two lanes emit concurrently. Attempts die on each lane
// while the other continues.
func (f *projectionFixture) writeConcurrentRun() {
	proposal := must[stream.Proposal](f.t)(f.log.ProposeInput(f.ctx, run, [32]byte{1}, &stream.Input{
		Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: user.ID, Message: &user}}},
	}))
	f.open("1/model", stream.Opening{RunID: run.ID, Input: proposal.Seq, ProtocolVersion: "1.0"},
		&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID, ProtocolVersion: "1.0"}, &agui.StepStarted{StepName: "tools"})
	f.after = f.last()
	begin := func(lane int) *stream.Attempt {
		a, _, err := f.log.Begin(f.ctx, stream.Place{Run: run, Lane: stream.LaneMain.Tool(lane), Step: fmt.Sprint("1/", lane), Execution: "e1"})
		if err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(a.Close)
		f.step()
		return a
	}
	emit := func(a *stream.Attempt, events ...agui.Event) {
		for _, e := range events {
			before := f.last()
			if err := a.Emit(f.ctx, e); err != nil {
				f.t.Fatal(err)
			}
			f.await(before)
		}
	}
	finish := func(a *stream.Attempt, id, text string) {
		emit(a, textStart(id), textContent(id, text))
		must[uint64](f.t)(a.Finish(f.ctx, &stream.Result{Messages: []agui.Message{{ID: id, Role: agui.RoleAssistant, Content: agui.TextContent(text)}}}, textEnd(id)))
		f.step()
	}
	first, other := begin(0), begin(1)
	emit(first, textStart("m1"), textContent("m1", "Hel"))
	emit(other, textStart("m2"), textContent("m2", "By"))
	emit(first, textContent("m1", "lo"))
	other = begin(1)
	emit(other, textStart("m2"), textContent("m2", "Good"))
	emit(first, textContent("m1", " th"))
	emit(other, textContent("m2", "by"))
	first = begin(0)
	emit(other, textContent("m2", "e th"))
	finish(first, "m1", "Hi.")
	finish(begin(1), "m2", "Bye.")
	if _, _, err := f.log.Seal(f.ctx, f.place("finish"), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		f.t.Fatal(err)
	}
	f.step()
}

// accept applies frames by the reference client's rules and returns the client's messages. It
// leaves out the last snapshot, which is for clients with an old list.
func accept(t *testing.T, what string, frames []view.Frame) []agui.Message {
	t.Helper()
	var verifier agui.Verifier
	screen := agui.NewReducer([]agui.Message{user}, nil)
	cursor, healing := "", len(frames)-2
	for i, f := range frames {
		e, err := agui.Decode(f.Event)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := verifier.Check(e); err != nil {
			t.Fatalf("%s: event %d of %d is refused: %v\n%s", what, i, len(frames), err, formatFrames(frames[:i+1]))
		}
		if _, snapshot := e.(*agui.MessagesSnapshot); snapshot && i == healing {
			continue
		}
		if err := screen.Apply(e); err != nil {
			t.Fatalf("%s: event %d: %v", what, i, err)
		}
		if next := f.Cursor.String(); next <= cursor {
			t.Fatalf("%s: event %d: cursor %s follows %s, want a later one", what, i, next, cursor)
		} else {
			cursor = next
		}
	}
	return screen.Messages()
}

// formatFrames returns frames as text, one a line.
func formatFrames(frames []view.Frame) string {
	var s string
	for _, f := range frames {
		s += fmt.Sprintf("%s %s\n", f.Cursor, f.Event)
	}
	return s
}

// wantSameMessages checks that a client has the messages of the log.
func wantSameMessages(t *testing.T, what string, got, want []agui.Message, frames []view.Frame) {
	t.Helper()
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
		t.Fatalf("%s: the client's messages differ from the log's (-log +client):\n%s\n%s", what, diff, formatFrames(frames))
	}
}

// asJSON encodes a value as JSON.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	return string(must[[]byte](t)(json.MarshalIndent(v, "", " ")))
}

// TestEndClosesOpenScopes: a run may be sealed while an attempt emits that the sealing process does
// not know. Readers still get a valid end, and all the same one.
func TestEndClosesOpenScopes(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), stream.Opening{RunID: run.ID, Input: proposeInput(t, ctx, l), ProtocolVersion: "1.0"},
		&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}, &agui.StepStarted{StepName: "model"}))
	a := begin(t, ctx, l, place("1/model", 0))
	open := []agui.Event{
		&agui.StepStarted{StepName: "search"}, &agui.SubagentStarted{SubagentRunID: "s1", Name: "scout"},
		&agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"}, textStart("m1"), textContent("m1", "Hel"),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "weather"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: `{"ci`},
	}
	before := len(recordsOf(t, l))
	if err := a.Emit(ctx, open...); err != nil {
		t.Fatal(err)
	}
	for len(recordsOf(t, l)) == before {
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
	}
	if _, _, err := l.Seal(ctx, place("finish", 0), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	frames := readAll(t, ctx, follower, view.Options{})
	var verifier agui.Verifier
	for _, f := range frames {
		if err := verifier.Check(must[agui.Event](t)(agui.Decode(f.Event))); err != nil {
			t.Fatalf("%s is refused: %v\n%s", f.Event, err, formatFrames(frames))
		}
	}
	for i := range frames[:len(frames)-1] {
		after := frames[i].Cursor
		wantSameFrames(t, append(slices.Clone(frames[:i+1]), readAll(t, ctx, follower, view.Options{After: &after})...), frames)
	}
}

// reconnectedReader is a reader that reconnected with a cursor.
type reconnectedReader struct {
	what   string
	before []view.Frame
	after  []view.Frame
	err    error
}

// all returns the events before and after the reconnect.
func (c reconnectedReader) all() []view.Frame {
	return append(append([]view.Frame{}, c.before...), c.after...)
}

// TestReconnectAfterEveryEvent: a reader may disconnect after any event and reconnect at any time.
// It gets exactly the remaining events, in an order that the reference client accepts, and ends
// with the conversation of the log. It may disconnect again within them.
func TestReconnectAfterEveryEvent(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*projectionFixture){
		"sequential": (*projectionFixture).writeRun, "concurrent": (*projectionFixture).writeConcurrentRun,
		"begin records": func(f *projectionFixture) { f.begins = true; f.writeRun() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkReconnectAfterEachEvent(t, tell)
		})
	}
}

// checkReconnectAfterEachEvent checks readers that disconnect after each event of a run.
func checkReconnectAfterEachEvent(t *testing.T, write func(*projectionFixture)) {
	t.Helper()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)

	var (
		mu          sync.Mutex
		shown       []view.Frame
		readers     sync.WaitGroup
		reconnected []reconnectedReader
	)
	resume := func(what string, before []view.Frame) {
		cursor := before[len(before)-1].Cursor
		shownView := viewer(follower).Run(run, view.Options{After: &cursor})
		readers.Go(func() {
			defer shownView.Close()
			after, err := readOn(ctx, shownView)
			mu.Lock()
			defer mu.Unlock()
			reconnected = append(reconnected, reconnectedReader{what, before, after, err})
		})
	}
	live := &pollingReader{view: viewer(follower).Run(run, view.Options{})}
	defer live.view.Close()
	records := 0
	s := &projectionFixture{t: t, ctx: ctx, log: l, run: run}
	s.step = func() {
		// The live reader reads all available events. Then readers reconnect after every event so
		// far.
		records++
		live.poll(ctx, s.last())
		shown = live.frames
		if records%3 != 0 { // every third record keeps the test within seconds
			return
		}
		for k := range shown {
			resume(fmt.Sprintf("disconnected after event %d, back at record %d", k, records), shown[:k+1:k+1])
		}
	}
	write(s)

	log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0)).Messages()
	wantSameMessages(t, "live reader", accept(t, "live reader", shown), log, shown)
	late := readAll(t, ctx, follower, view.Options{})
	wantSameMessages(t, "late reader", accept(t, "late reader", late), log, late)
	for _, f := range late {
		if f.Type == agui.EventTextMessageContent && string(f.Event) == string(must[json.RawMessage](t)(agui.Encode(textContent("m1", "Hel")))) {
			t.Error("late reader is shown the text of a dead attempt, want it hidden")
		}
	}
	for k := range shown {
		resume(fmt.Sprintf("disconnected after event %d, back at the end", k), shown[:k+1:k+1])
	}
	for k := range late { // a late reader disconnects before the death of an attempt that it was not shown
		resume(fmt.Sprintf("late, disconnected after event %d", k), late[:k+1:k+1])
	}
	readers.Wait()
	first := reconnected
	reconnected = nil
	t.Logf("%d records, %d events live, %d late, %d continuations", records, len(shown), len(late), len(first))
	for _, c := range first {
		if !errors.Is(c.err, io.EOF) {
			t.Fatalf("%s: got the end %v, want EOF", c.what, c.err)
		}
		wantSameMessages(t, c.what, accept(t, c.what, c.all()), log, c.all())
	}
	for i, c := range first {
		if i%7 != 0 {
			continue
		}
		for j := range c.after {
			resume(fmt.Sprintf("%s, disconnected again after event %d", c.what, j), append(append([]view.Frame{}, c.before...), c.after[:j+1]...))
		}
		readers.Wait()
	}
	for _, c := range reconnected {
		if !errors.Is(c.err, io.EOF) {
			t.Fatalf("%s: got the end %v, want EOF", c.what, c.err)
		}
		wantSameMessages(t, c.what, accept(t, c.what, c.all()), log, c.all())
	}
	t.Logf("%d second continuations", len(reconnected))
}
