package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

func runNamed(id string) stream.Run { return stream.Run{Thread: thread, ID: id} }

func asks(id, content string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(content)}
}

// tellThread writes three runs: one with tools and a state; one that cuts the conversation with its
// reasoning, sets a state and fails; one that is cancelled during its text.
func (s *projectionFixture) tellThread() {
	s.begin(runNamed("r1"), user, `{"given":1}`)
	s.callTools("m1")
	s.attempt(s.place("2/model"), &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
		&agui.ReasoningMessageContent{MessageID: "x1", Delta: "hm"})
	s.after = s.live(s.place("2/model"), says(agui.Message{ID: "x1", Role: agui.RoleReasoning, Content: agui.TextContent("hmm")}, assistant("m2", "Sunny.")),
		&agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"}, &agui.ReasoningMessageContent{MessageID: "x1", Delta: "hmm"},
		&agui.ReasoningMessageEnd{MessageID: "x1"}, &agui.ReasoningEnd{MessageID: "x1"}, start("m2"), text("m2", "Sunny."), end("m2"))
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r1"})

	known := must[*snapshot.Snapshot](s.t)(snapshots(s.log).Latest(s.ctx, thread, 0)).Messages()
	edited := []agui.Message{known[0], asks("u2", "never mind"), known[1]} // known messages follow new ones
	s.accept(runNamed("r2"), must[*snapshot.Snapshot](s.t)(snapshots(s.log).Latest(s.ctx, thread, 0)).Accept(snapshot.Claim{Messages: edited, History: snapshot.HistoryReplace}), `{"given":2}`)
	s.attempt(s.place("1/model"), start("m3"), text("m3", "As"))
	s.attempt(s.place("1/model"), start("m3"), text("m3", "As you"))
	s.supersede(s.place("1/model"), false)
	s.seal(&agui.RunError{Code: "internal", Message: "no"})

	s.begin(runNamed("r3"), asks("u3", "so?"), "")
	s.attempt(s.place("1/model"), start("m4"), text("m4", "Let me"), text("m4", " think"))
	s.supersede(s.place("1/model"), true)
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r3", Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}})
}

// tellAbandoned writes a run that never ends, because its workflow was terminated, and the next
// run. The first run is sealed too late.
func (s *projectionFixture) tellAbandoned() {
	s.begin(runNamed("r1"), user, "")
	lost := s.attempt(s.place("1/model"), &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
		&agui.ReasoningMessageContent{MessageID: "x1", Delta: "hm"}, start("m1"), text("m1", "It "),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: `{"`})
	s.begin(runNamed("r3"), asks("u2", "hello?"), "")
	s.emit(lost, text("m1", "not shown"))
	s.after = s.live(s.place("1/model"), says(assistant("m2", "Yes.")), start("m2"), text("m2", "Yes."), end("m2"))
	if _, _, err := s.log.Seal(s.ctx, stream.Place{Run: runNamed("r1"), Lane: stream.LaneMain, Step: "silence", Execution: "e1"},
		&agui.RunError{Code: "workflow_terminated", Message: "gone"}); err != nil {
		s.t.Fatal(err)
	}
	s.step()
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r3"})
}

// ended reports whether frames reach the end of the story's last run. Older clients get a cancelled
// run as an error.
func ended(frames []view.Frame) bool {
	if len(frames) == 0 {
		return false
	}
	last := frames[len(frames)-1]
	return last.Type == agui.EventRunFinished && strings.Contains(string(last.Event), `"r3"`) ||
		last.Type == agui.EventRunError && strings.Contains(string(last.Event), `"cancelled"`)
}

// follows reads a thread until the story's last run is over: a view with follow does not end.
func follows(ctx context.Context, v *view.View) ([]view.Frame, error) {
	var frames []view.Frame
	for {
		more, err := v.Next(ctx, time.Minute)
		if err != nil {
			return frames, err
		}
		if more == nil {
			return frames, errors.New("idle")
		}
		if frames = append(frames, more...); ended(frames) {
			return frames, io.EOF
		}
	}
}

// TestThreadAtEveryRecord: a reader of a thread, at any record, is shown the thread's messages and
// state, and then each following run. A reader that disconnects after any event, and reconnects at
// any time, continues exactly.
func TestThreadAtEveryRecord(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*projectionFixture){"three runs": (*projectionFixture).tellThread, "an abandoned run": (*projectionFixture).tellAbandoned} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			c := newViewers(t, ctx, l)
			c.readOn = follows
			follow := view.ThreadOptions{IncludeLater: true}
			first := &held{view: viewer(c.follower).Thread(thread, follow)}
			defer first.view.Close()
			later := []*held{first}
			records := 0
			s := &projectionFixture{t: t, ctx: ctx, log: l}
			s.step = func() {
				records++
				for i, h := range later {
					h.poll(ctx, s.last())
					for k := range h.frames {
						if after := h.frames[k].Cursor; !after.IsZero() && (k*3+records)%13 == 0 && !ended(h.frames[:k+1]) {
							c.send(viewer(c.follower).Thread(thread, view.ThreadOptions{After: &after, IncludeLater: true}), reading{
								what: fmt.Sprintf("reader %d, disconnected after event %d, back at record %d", i, k, records), before: h.frames[: k+1 : k+1],
							})
						}
					}
				}
				c.send(viewer(c.follower).Thread(thread, follow), reading{what: fmt.Sprintf("joined at record %d", records), old: show(t, "first", nil, first.frames, true).messages})
				if records%15 == 0 {
					h := &held{view: viewer(c.follower).Thread(thread, follow)}
					t.Cleanup(h.view.Close)
					later = append(later, h)
				}
			}
			tell(s)
			log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
			read := c.wait()
			t.Logf("%d records, %d readers", records, len(read))
			read = append(read, reading{what: "first", before: first.frames})
			for _, r := range read {
				all := r.all()
				checkCursors(t, r.what, all)
				sameAsLog(t, r.what, show(t, r.what, nil, all, true), log, all)
				had := show(t, r.what, r.old, all, true)
				had.messages = withoutStale(had.messages, log)
				sameAsLog(t, r.what+" with an old list", had, log, all)
				if r.before == nil && all[len(all)-1].Type != agui.EventRunFinished {
					t.Fatalf("%s:\n%s", r.what, dump(all))
				}
			}
			for i, r := range read {
				if i%31 != 0 && r.what != "first" { // a sample keeps the test within seconds
					continue
				}
				all := r.all()
				for k, f := range all {
					if after := f.Cursor; !after.IsZero() && !ended(all[:k+1]) {
						c.sendLate(viewer(c.follower).Thread(thread, view.ThreadOptions{After: &after, IncludeLater: true}),
							reading{what: fmt.Sprintf("%s, disconnected after event %d, back at the end", r.what, k), before: all[:k+1]})
					}
				}
			}
			second := c.wait()
			t.Logf("%d continuations", len(second))
			for _, r := range second {
				checkCursors(t, r.what, r.all())
				sameAsLog(t, r.what, show(t, r.what, nil, r.all(), true), log, r.all())
			}
			if name == "three runs" { // at its own endpoint, an abandoned run may continue for a moment
				crossed(t, ctx, c.follower, slices.Concat(second, read))
			}
		})
	}
}

// crossed uses the cursors of a thread's readers at the endpoints of its runs. The cursor's own run
// shows the same events up to its end. The other runs refuse the cursor.
func crossed(t *testing.T, ctx context.Context, follower *stream.Follower, read []reading) {
	t.Helper()
	taken := map[string]bool{}
	exact := 0
	for _, r := range read {
		all := r.all()
		for k, f := range all {
			if f.Cursor.IsZero() || taken[f.Cursor.String()] || len(r.before) > 0 && k >= len(r.before) {
				continue
			}
			taken[f.Cursor.String()] = true
			thread := rest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &f.Cursor}))
			owners := 0
			for _, id := range []string{"r1", "r2", "r3"} {
				shownView := viewer(follower).Run(runNamed(id), view.Options{After: &f.Cursor})
				frames, err := readOn(ctx, shownView)
				shownView.Close()
				if errors.Is(err, stream.ErrInvalidCursor) {
					continue
				}
				if !errors.Is(err, io.EOF) {
					t.Fatalf("%s at run %s: %v", f.Cursor, id, err)
				}
				owners++
				sameTextsOf(t, f.Cursor.String()+" at run "+id, frames, thread[:min(len(frames), len(thread))])
			}
			if owners > 1 {
				t.Fatalf("%s is accepted by %d runs", f.Cursor, owners)
			}
			exact += owners
		}
	}
	t.Logf("%d cursors, %d accepted by their run", len(taken), exact)
	if exact < len(taken)*3/4 {
		t.Errorf("accepted by their run: got %[2]d of %[1]d cursors", len(taken), exact)
	}
}

func rest(t *testing.T, ctx context.Context, v *view.View) []view.Frame {
	t.Helper()
	defer v.Close()
	return must[[]view.Frame](t)(readToEnd(ctx, v))
}

func sameTextsOf(t *testing.T, what string, a, b []view.Frame) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%s: got %d frames, want %d\n%s", what, len(a), len(b), dump(a))
	}
	for i := range a {
		if string(a[i].Event) != string(b[i].Event) || a[i].Cursor.String() != b[i].Cursor.String() {
			t.Fatalf("%s: event %d: got %s %s, want %s %s", what, i, a[i].Cursor, a[i].Event, b[i].Cursor, b[i].Event)
		}
	}
}

// TestRunsCursorInItsThread: a cursor of a run is valid in its thread.
func TestRunsCursorInItsThread(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	s := &projectionFixture{t: t, ctx: ctx, log: l, step: func() {}}
	s.tellThread()
	log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	for _, join := range []bool{false, true} {
		shownView := viewer(follower).Run(runNamed("r1"), view.Options{Join: join})
		frames := rest(t, ctx, shownView)
		for k, f := range frames {
			if f.Cursor.IsZero() {
				continue
			}
			all := slices.Concat(frames[:k+1], rest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &f.Cursor})))
			what := fmt.Sprintf("disconnected after event %d", k)
			checkCursors(t, what, all)
			sameAsLog(t, what, show(t, what, []agui.Message{user}, all, true), log, all)
		}
	}
	other := stream.Thread{Tenant: thread.Tenant, ID: "another"}
	foreign := rest(t, ctx, viewer(follower).Run(runNamed("r1"), view.Options{}))[0].Cursor
	shownView := viewer(follower).Thread(other, view.ThreadOptions{After: &foreign})
	defer shownView.Close()
	if frames, err := shownView.Next(ctx, time.Second); !errors.Is(err, stream.ErrInvalidCursor) {
		t.Errorf("in another thread: got %v, %v, want ErrInvalidCursor", frames, err)
	}
}

// TestThreadWhoseLastRunFailed: a reader of a thread whose last run failed gets the error as
// metadata, not as RUN_ERROR.
func TestThreadWhoseLastRunFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile stream.Profile
		end     agui.Event
		suffix  string
	}{
		{stream.Profile1, &agui.RunError{Code: "timeout", Message: "late"}, `,"metadata":{"perdure.error":{"code":"timeout","message":"late"}}}`},
		{stream.Profile0, &agui.RunError{Code: "timeout", Message: "late"}, `,"metadata":{"perdure.error":{"code":"timeout","message":"late"}}}`},
		{stream.Profile1, &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}}, `,"outcome":{"type":"cancelled"}}`},
		{stream.Profile0, &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}},
			`,"metadata":{"perdure.error":{"code":"cancelled","message":"the run was cancelled"}}}`},
	} {
		ctx, l := testContext(t), streamtest.Open(t)
		follower := streamtest.Follow(t, l)
		s := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
		s.begin(run, user, "")
		s.seal(c.end)
		frames := rest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{Profile: c.profile}))
		if last := string(frames[len(frames)-1].Event); len(frames) != 4 || last != `{"type":"RUN_FINISHED","threadId":"t/1 with.dots and *","runId":"r1"`+c.suffix {
			t.Errorf("profile %s: got %s", c.profile, dump(frames))
		}
		if more := rest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &frames[3].Cursor})); len(more) != 0 {
			t.Errorf("after the end: got %s", dump(more))
		}
		if joined := readAll(t, ctx, follower, view.Options{Join: true, Profile: stream.Profile1}); joined[3].Type != c.end.EventType() {
			t.Errorf("reader of the run itself: got %s", dump(joined))
		}
	}
}

// TestThreadIsNotFollowed: without follow a view ends after the active run, or at once if no run is
// active.
func TestThreadIsNotFollowed(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	if frames := rest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{})); len(frames) != 0 {
		t.Errorf("empty thread: got %s", dump(frames))
	}
	s := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	s.begin(run, user, "")
	shownView := viewer(follower).Thread(thread, view.ThreadOptions{})
	defer shownView.Close()
	if _, ok := shownView.Run(); ok {
		t.Error("Run of an unread view: got ok")
	}
	frames := must[[]view.Frame](t)(shownView.Next(ctx, time.Minute))
	if active, ok := shownView.Run(); !ok || active != run {
		t.Errorf("Run: got %v, %v", active, ok)
	}
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	s.begin(runNamed("r2"), asks("u2", "and?"), "")
	arrived := viewer(follower).Run(s.run, view.Options{}) // both runs are in the follower when the reader continues
	defer arrived.Close()
	must[[]view.Frame](t)(arrived.Next(ctx, time.Minute))
	frames = append(frames, must[[]view.Frame](t)(readToEnd(ctx, shownView))...)
	if last := frames[len(frames)-1]; last.Type != agui.EventRunFinished || strings.Contains(dump(frames), `"r2"`) {
		t.Error(dump(frames))
	}
}

// TestThreadContinuesExactly: if no attempt died, a reader that reconnects gets exactly the
// remaining events, byte for byte.
func TestThreadContinuesExactly(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	shownView := viewer(follower).Thread(thread, view.ThreadOptions{IncludeLater: true})
	defer shownView.Close()
	if frames, err := shownView.Next(ctx, time.Millisecond); err != nil || frames != nil {
		t.Fatalf("before the first run: got %v, %v", frames, err)
	}
	s := &projectionFixture{t: t, ctx: ctx, log: l, step: func() {}}
	for i, id := range []string{"r1", "r2", "r3"} {
		s.begin(runNamed(id), asks("u"+id, "hello"), fmt.Sprintf(`{"run":%d}`, i))
		s.after = s.live(s.place("1/model"), says(assistant("m"+id, "Hi!")), start("m"+id), text("m"+id, "Hi"), text("m"+id, "!"), end("m"+id))
		s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: id})
	}
	frames, err := follows(ctx, shownView)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for k, f := range frames {
		more := rest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &f.Cursor}))
		sameTextsOf(t, fmt.Sprintf("disconnected after event %d", k), more, frames[k+1:])
	}
}
