package stream_test

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestModelTitleIsRestored: the title that a model has written is shown in place of the derived one,
// also after later runs, and after the index is restored from the log. A title that was written for
// a deleted thread is not given to the thread that has its ID now.
func TestModelTitleIsRestored(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	appendRun(t, l, 1, "u1", "a1")
	first := must[*stream.Record](t)(l.First(ctx, l.ThreadSubject(thread)+".>", 1))
	place := stream.Place{Run: stream.Run{Thread: thread, ID: "run1"}, Lane: stream.LaneTitle, Step: "title", Execution: "e"}
	must[uint64](t)(begin(t, ctx, l, place).Finish(ctx, &stream.Result{Title: "By a model"}))
	title := func(l *stream.Log) string {
		t.Helper()
		entry := must[*stream.IndexEntry](t)(l.Entry(ctx, thread))
		if entry == nil {
			t.Fatal("entry of the thread: got none")
		}
		return entry.Title()
	}
	derived := title(l)
	if err := l.SetModelTitle(ctx, thread, first.Time.Add(-time.Second), "Of another thread"); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "title of a thread that began at another time", title(l), derived)
	if err := l.SetModelTitle(ctx, thread, first.Time, "By a model"); err != nil {
		t.Fatal(err)
	}
	appendRun(t, l, 2, "u1 a1 u2", "a2")
	wantEqual(t, "title after a second run", title(l), "By a model")
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	if err := js.DeleteKeyValue(ctx, "PERDURE_threads"); err != nil {
		t.Fatal(err)
	}
	anew := must[*stream.Log](t)(stream.Open(ctx, l.Conn(), stream.Options{}))
	if err := anew.RestoreIndex(ctx); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "restored title", title(anew), "By a model")
	if err := snapshots(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	if err := anew.SetModelTitle(ctx, thread, first.Time, "Late"); !errors.Is(err, stream.ErrNotListed) {
		t.Errorf("SetModelTitle of a deleted thread: got %v, want ErrNotListed", err)
	}
}

// TestTitleIsHiddenFromReaders: the records of the model call for a title, during the run and after
// its end, are shown to no reader and do not change the thread. A reader may continue after them.
func TestTitleIsHiddenFromReaders(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	s := &projectionFixture{t: t, ctx: ctx, log: l, step: func() {}}
	s.begin(runNamed("r1"), user, "")
	place := stream.Place{Run: runNamed("r1"), Lane: stream.LaneTitle, Step: "title", Execution: "e"}
	attempt := begin(t, ctx, l, place)
	if err := errors.Join(attempt.Note(map[string]int{"n": 1}), attempt.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	during := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	wantEqual(t, "lanes with open calls", len(during.Begun), 0)
	s.after = s.writeFinishedAttempt(s.place("1/model"), resultWith(assistantMessage("m1", "Hello.")), textStart("m1"), textContent("m1", "Hello."), textEnd("m1"))
	s.seal(&agui.RunFinished{ThreadID: thread.ID, RunID: "r1"})
	last := must[uint64](t)(attempt.Finish(ctx, &stream.Result{Title: "A title"}))
	snap := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, last))
	wantEqual(t, "number of messages", len(snap.Messages()), 2)
	follower := streamtest.Follow(t, l)
	shown := func(after *stream.Cursor) (types []agui.EventType) {
		t.Helper()
		shownView := viewer(follower).Thread(thread, view.ThreadOptions{Generation: stream.Generation1, After: after})
		defer shownView.Close()
		for {
			frames, err := shownView.NextPast(ctx)
			if errors.Is(err, io.EOF) || err == nil && len(frames) == 0 {
				return types
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames {
				types = append(types, f.Type)
			}
		}
	}
	if types := shown(nil); !slices.Contains(types, agui.EventRunFinished) || slices.Contains(types, agui.EventStepStarted) {
		t.Errorf("events: got %v, want those of the run", types)
	}
	cursor := l.CursorAt(last)
	if diff := cmp.Diff([]agui.EventType(nil), shown(&cursor)); diff != "" {
		t.Errorf("events after the title (-want +got):\n%s", diff)
	}
}
