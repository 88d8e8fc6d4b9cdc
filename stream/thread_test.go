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

// runNamed returns a run of the tests' thread.
func runNamed(id string) stream.Run { return stream.Run{Thread: thread, ID: id} }

// userMessage returns a message of the user.
func userMessage(id, content string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(content)}
}

// writeThread writes three runs: one with tools and a state; one that cuts the conversation with
// its reasoning, sets a state and fails after a call; one that is cancelled during a call.
func (f *projectionFixture) writeThread() {
	f.begin(runNamed("r1"), user, `{"given":1}`)
	f.callTools("m1")
	f.attempt(f.place("2/model"), &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
		&agui.ReasoningMessageContent{MessageID: "x1", Delta: "hm"})
	f.after = f.writeFinishedAttempt(f.place("2/model"), resultWith(agui.Message{ID: "x1", Role: agui.RoleReasoning, Content: agui.TextContent("hmm")}, assistantMessage("m2", "Sunny.")),
		&agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"}, &agui.ReasoningMessageContent{MessageID: "x1", Delta: "hmm"},
		&agui.ReasoningMessageEnd{MessageID: "x1"}, &agui.ReasoningEnd{MessageID: "x1"}, textStart("m2"), textContent("m2", "Sunny."), textEnd("m2"))
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r1"})

	known := must[*snapshot.Snapshot](f.t)(snapshots(f.log).Latest(f.ctx, thread, 0)).Messages()
	edited := []agui.Message{known[0], userMessage("u2", "never mind"), known[1]} // known messages follow new ones
	f.accept(runNamed("r2"), must[*snapshot.Snapshot](f.t)(snapshots(f.log).Latest(f.ctx, thread, 0)).Accept(snapshot.Claim{Messages: edited, History: snapshot.HistoryReplace}), `{"given":2}`)
	f.callUnanswered("m3")
	f.open("2/model", nil, &agui.StepFinished{StepName: "model"}, &agui.StepStarted{StepName: "model"})
	f.after = f.last()
	f.attempt(f.place("2/model"), textStart("m5"), textContent("m5", "As"))
	f.attempt(f.place("2/model"), textStart("m5"), textContent("m5", "As you"))
	f.supersede(f.place("2/model"), false)
	f.seal(&agui.RunError{Code: "internal", Message: "no"})

	f.begin(runNamed("r3"), userMessage("u3", "so?"), "")
	f.attempt(f.place("1/model"), append([]agui.Event{textStart("m4"), textContent("m4", "Let me"), textContent("m4", " think"), textEnd("m4")}, halfCall("m4")...)...)
	f.supersede(f.place("1/model"), true)
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r3", Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}})
}

// writeAbandonedRun writes a run that never ends, because its workflow was terminated, and the next
// run. The first run is sealed too late.
func (f *projectionFixture) writeAbandonedRun() {
	f.begin(runNamed("r1"), user, "")
	lost := f.attempt(f.place("1/model"), &agui.ReasoningStart{MessageID: "x1"}, &agui.ReasoningMessageStart{MessageID: "x1"},
		&agui.ReasoningMessageContent{MessageID: "x1", Delta: "hm"}, textStart("m1"), textContent("m1", "It "),
		&agui.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "m1"}, &agui.ToolCallArgs{ToolCallID: "c1", Delta: `{"`})
	f.begin(runNamed("r3"), userMessage("u2", "hello?"), "")
	f.emit(lost, textContent("m1", "not shown"))
	f.after = f.writeFinishedAttempt(f.place("1/model"), resultWith(assistantMessage("m2", "Yes.")), textStart("m2"), textContent("m2", "Yes."), textEnd("m2"))
	if _, _, err := f.log.Seal(f.ctx, stream.Place{Run: runNamed("r1"), Lane: stream.LaneMain, Step: "silence", Execution: "e1"},
		&agui.RunError{Code: "workflow_terminated", Message: "gone"}); err != nil {
		f.t.Fatal(err)
	}
	f.step()
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r3"})
}

// hasEnded reports whether frames reach the end of the story's last run. Older clients get a
// cancelled run as an error.
func hasEnded(frames []view.Frame) bool {
	if len(frames) == 0 {
		return false
	}
	last := frames[len(frames)-1]
	return last.Type == agui.EventRunFinished && strings.Contains(string(last.Event), `"r3"`) ||
		last.Type == agui.EventRunError && strings.Contains(string(last.Event), `"cancelled"`)
}

// readFollowing reads a thread until the story's last run is over: a view with follow does not end.
func readFollowing(ctx context.Context, v *view.View) ([]view.Frame, error) {
	var frames []view.Frame
	for {
		more, err := v.Next(ctx, time.Minute)
		if err != nil {
			return frames, err
		}
		if more == nil {
			return frames, errors.New("idle")
		}
		if frames = append(frames, more...); hasEnded(frames) {
			return frames, io.EOF
		}
	}
}

// TestThreadAtEveryRecord: a reader of a thread, at any record, is shown the thread's messages and
// state, and then each following run. A reader that disconnects after any event, and reconnects at
// any time, continues exactly.
func TestThreadAtEveryRecord(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*projectionFixture){"three runs": (*projectionFixture).writeThread, "an abandoned run": (*projectionFixture).writeAbandonedRun} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			c := newConcurrentReaders(t, ctx, l)
			c.readOn = readFollowing
			follow := view.ThreadOptions{IncludeLater: true}
			first := &pollingReader{view: viewer(c.follower).Thread(thread, follow)}
			defer first.view.Close()
			later := []*pollingReader{first}
			records := 0
			s := &projectionFixture{t: t, ctx: ctx, log: l}
			s.step = func() {
				records++
				for i, h := range later {
					h.poll(ctx, s.last())
					for k := range h.frames {
						if after := h.frames[k].Cursor; !after.IsZero() && (k*3+records)%13 == 0 && !hasEnded(h.frames[:k+1]) {
							c.send(viewer(c.follower).Thread(thread, view.ThreadOptions{After: &after, IncludeLater: true}), shownEvents{
								what: fmt.Sprintf("reader %d, disconnected after event %d, back at record %d", i, k, records), before: h.frames[: k+1 : k+1],
							})
						}
					}
				}
				c.send(viewer(c.follower).Thread(thread, follow), shownEvents{what: fmt.Sprintf("joined at record %d", records), messages: applyFrames(t, "first", nil, first.frames, true).messages})
				if records%15 == 0 {
					h := &pollingReader{view: viewer(c.follower).Thread(thread, follow)}
					t.Cleanup(h.view.Close)
					later = append(later, h)
				}
			}
			tell(s)
			log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
			read := c.wait()
			t.Logf("%d records, %d readers", records, len(read))
			read = append(read, shownEvents{what: "first", before: first.frames})
			for _, r := range read {
				all := r.all()
				checkCursors(t, r.what, all)
				wantScreenOfLog(t, r.what, applyFrames(t, r.what, nil, all, true), log, all)
				had := applyFrames(t, r.what, r.messages, all, true)
				had.messages = dropStaleReasoning(had.messages, log)
				wantScreenOfLog(t, r.what+" with an old list", had, log, all)
				if r.before == nil && all[len(all)-1].Type != agui.EventRunFinished {
					t.Fatalf("%s: last event: want RUN_FINISHED, got\n%s", r.what, formatFrames(all))
				}
			}
			for i, r := range read {
				if i%31 != 0 && r.what != "first" { // a sample keeps the test within seconds
					continue
				}
				all := r.all()
				for k, f := range all {
					if after := f.Cursor; !after.IsZero() && !hasEnded(all[:k+1]) {
						c.sendLate(viewer(c.follower).Thread(thread, view.ThreadOptions{After: &after, IncludeLater: true}),
							shownEvents{what: fmt.Sprintf("%s, disconnected after event %d, back at the end", r.what, k), before: all[:k+1]})
					}
				}
			}
			second := c.wait()
			t.Logf("%d continuations", len(second))
			for _, r := range second {
				checkCursors(t, r.what, r.all())
				wantScreenOfLog(t, r.what, applyFrames(t, r.what, nil, r.all(), true), log, r.all())
			}
			if name == "three runs" { // at its own endpoint, an abandoned run may continue for a moment
				checkCursorsAcrossRuns(t, ctx, c.follower, slices.Concat(second, read))
			}
		})
	}
}

// checkCursorsAcrossRuns uses the cursors of a thread's readers at the endpoints of its runs. The
// cursor's own run shows the same events up to its end. The other runs refuse the cursor.
func checkCursorsAcrossRuns(t *testing.T, ctx context.Context, follower *stream.Follower, read []shownEvents) {
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
			thread := readRest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &f.Cursor}))
			owners := 0
			for _, id := range []string{"r1", "r2", "r3"} {
				shownView := viewer(follower).Run(runNamed(id), view.Options{After: &f.Cursor})
				frames, err := readOn(ctx, shownView)
				shownView.Close()
				if errors.Is(err, stream.ErrInvalidCursor) {
					continue
				}
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s at run %s: end of the view = %v, want %v", f.Cursor, id, err, io.EOF)
				}
				owners++
				wantSameTextsOf(t, f.Cursor.String()+" at run "+id, frames, thread[:min(len(frames), len(thread))])
			}
			if owners > 1 {
				t.Errorf("number of runs with the cursor = %v, want at most %v", owners, 1)
			}
			exact += owners
		}
	}
	t.Logf("%d cursors, %d accepted by their run", len(taken), exact)
	if exact < len(taken)*3/4 {
		t.Errorf("number of exact cursors = %v, want at least %v", exact, len(taken)*3/4)
	}
}

// readRest reads a view to its end.
func readRest(t *testing.T, ctx context.Context, v *view.View) []view.Frame {
	t.Helper()
	defer v.Close()
	return must[[]view.Frame](t)(readToEnd(ctx, v))
}

// wantSameTextsOf checks that two lists of frames have equal events and cursors.
func wantSameTextsOf(t *testing.T, what string, a, b []view.Frame) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%s: got %d frames, want %d\n%s", what, len(a), len(b), formatFrames(a))
	}
	for i := range a {
		if string(a[i].Event) != string(b[i].Event) || a[i].Cursor.String() != b[i].Cursor.String() {
			t.Fatalf("%s: event %d: got %s %s, want %s %s", what, i, a[i].Cursor, a[i].Event, b[i].Cursor, b[i].Event)
		}
	}
}

// TestRunCursorInThread: a cursor of a run is valid in its thread.
func TestRunCursorInThread(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	s := &projectionFixture{t: t, ctx: ctx, log: l, step: func() {}}
	s.writeThread()
	log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	for _, join := range []bool{false, true} {
		shownView := viewer(follower).Run(runNamed("r1"), view.Options{Join: join})
		frames := readRest(t, ctx, shownView)
		for k, f := range frames {
			if f.Cursor.IsZero() {
				continue
			}
			all := slices.Concat(frames[:k+1], readRest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &f.Cursor})))
			what := fmt.Sprintf("disconnected after event %d", k)
			checkCursors(t, what, all)
			wantScreenOfLog(t, what, applyFrames(t, what, []agui.Message{user}, all, true), log, all)
		}
	}
	other := stream.Thread{Tenant: thread.Tenant, ID: "another"}
	foreign := readRest(t, ctx, viewer(follower).Run(runNamed("r1"), view.Options{}))[0].Cursor
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
		generation stream.Generation
		end        agui.Event
		wantSuffix string
	}{
		{stream.Generation1, &agui.RunError{Code: "timeout", Message: "late"}, `,"metadata":{"perdure.error":{"code":"timeout","message":"late"}}}`},
		{stream.Generation0, &agui.RunError{Code: "timeout", Message: "late"}, `,"metadata":{"perdure.error":{"code":"timeout","message":"late"}}}`},
		{stream.Generation1, &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}}, `,"outcome":{"type":"cancelled"}}`},
		{stream.Generation0, &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}},
			`,"metadata":{"perdure.error":{"code":"cancelled","message":"the run was cancelled"}}}`},
	} {
		ctx, l := testContext(t), streamtest.Open(t)
		follower := streamtest.Follow(t, l)
		f := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
		f.begin(run, user, "")
		f.seal(c.end)
		frames := readRest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{Generation: c.generation}))
		last := string(frames[len(frames)-1].Event)
		wantEqual(t, fmt.Sprintf("generation %s: number of frames", c.generation), len(frames), 4)
		wantEqual(t, fmt.Sprintf("generation %s: last event", c.generation), last, `{"type":"RUN_FINISHED","threadId":"t/1 with.dots and *","runId":"r1"`+c.wantSuffix)
		more := readRest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &frames[3].Cursor}))
		wantEqual(t, "number of frames after the last cursor", len(more), 0)
		joined := readAll(t, ctx, follower, view.Options{Join: true, Generation: stream.Generation1})
		wantEqual(t, "last event of a joined reader", joined[3].Type, c.end.EventType())
	}
}

// TestThreadWithoutFollow: without follow a view ends after the active run, or at once if no run is
// active.
func TestThreadWithoutFollow(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	if frames := readRest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{})); len(frames) != 0 {
		t.Errorf("number of frames of an empty thread = %v, want %v", len(frames), 0)
	}
	f := &projectionFixture{t: t, ctx: ctx, log: l, run: run, step: func() {}}
	f.begin(run, user, "")
	shownView := viewer(follower).Thread(thread, view.ThreadOptions{})
	defer shownView.Close()
	if _, ok := shownView.Run(); ok {
		t.Error("Run of an unread view: got ok, want none")
	}
	frames := must[[]view.Frame](t)(shownView.Next(ctx, time.Minute))
	if active, ok := shownView.Run(); !ok || active != run {
		t.Errorf("Run of a read view: got %v, %v, want %v", active, ok, run)
	}
	f.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: run.ID})
	f.begin(runNamed("r2"), userMessage("u2", "and?"), "")
	arrived := viewer(follower).Run(f.run, view.Options{}) // both runs are in the follower when the reader continues
	defer arrived.Close()
	must[[]view.Frame](t)(arrived.Next(ctx, time.Minute))
	frames = append(frames, must[[]view.Frame](t)(readToEnd(ctx, shownView))...)
	if last := frames[len(frames)-1]; last.Type != agui.EventRunFinished || strings.Contains(formatFrames(frames), `"r2"`) {
		t.Errorf("events without follow: want the end of r1 last, got\n%s", formatFrames(frames))
	}
}

// TestThreadReconnectIsExact: if no attempt died, a reader that reconnects gets exactly the
// remaining events, byte for byte.
func TestThreadReconnectIsExact(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	shownView := viewer(follower).Thread(thread, view.ThreadOptions{IncludeLater: true})
	defer shownView.Close()
	if frames, err := shownView.Next(ctx, time.Millisecond); err != nil || frames != nil {
		t.Fatalf("read before the first run: got %v, %v, want nothing", frames, err)
	}
	s := &projectionFixture{t: t, ctx: ctx, log: l, step: func() {}}
	for i, id := range []string{"r1", "r2", "r3"} {
		s.begin(runNamed(id), userMessage("u"+id, "hello"), fmt.Sprintf(`{"run":%d}`, i))
		s.after = s.writeFinishedAttempt(s.place("1/model"), resultWith(assistantMessage("m"+id, "Hi!")), textStart("m"+id), textContent("m"+id, "Hi"), textContent("m"+id, "!"), textEnd("m"+id))
		s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: id})
	}
	frames, err := readFollowing(ctx, shownView)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for k, f := range frames {
		more := readRest(t, ctx, viewer(follower).Thread(thread, view.ThreadOptions{After: &f.Cursor}))
		wantSameTextsOf(t, fmt.Sprintf("disconnected after event %d", k), more, frames[k+1:])
	}
}
