package stream_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// writeLongThread writes short runs and checkpoints, as workers do. The last run cuts the
// conversation, differs from its client's list, and is so long that a checkpoint follows its start:
// readers of its start need the thread before that checkpoint.
func writeLongThread(t testing.TB, ctx context.Context, l *stream.Log, of stream.Thread, runs int) (last stream.Run) {
	t.Helper()
	for i := range runs {
		last = stream.Run{Thread: of, ID: fmt.Sprintf("r%d", i)}
		before := mustSnapshot(t)(snapshots(l).Latest(ctx, of, 0))
		messages := []agui.Message{userMessage(fmt.Sprintf("u%d", i), "And then?")}
		accepted, words := before.Accept(snapshot.Claim{Messages: messages, History: snapshot.HistoryAppend}), strings.Repeat("and then ", 20)
		if i > 0 && i == runs-1 {
			known := before.Messages()
			accepted = before.Accept(snapshot.Claim{Messages: append(known[:len(known)-2:len(known)-2], messages...)})
			accepted.Differs, words = true, strings.Repeat("and then ", 8000)
		}
		writeShortRun(t, ctx, l, last, accepted, words)
	}
	return last
}

// writeShortRun writes a run with one answer.
func writeShortRun(t testing.TB, ctx context.Context, l *stream.Log, run stream.Run, accepted stream.Acceptance, words string) {
	t.Helper()
	proposal, err := l.ProposeInput(ctx, run, [32]byte{1}, &stream.Input{Accepted: accepted})
	if err != nil {
		t.Fatal(err)
	}
	accepted.Tail = nil
	place := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e1"}
	place.After, err = l.OpenStep(ctx, place, stream.Opening{RunID: run.ID, Input: proposal.Seq, ProtocolVersion: "1.0", Accepted: accepted},
		&agui.RunStarted{ThreadID: run.Thread.ID, RunID: run.ID, ProtocolVersion: "1.0"})
	if err != nil {
		t.Fatal(err)
	}
	attempt, _, err := l.Begin(ctx, place)
	if err != nil {
		t.Fatal(err)
	}
	defer attempt.Close()
	id := "m-" + run.ID
	if place.After, err = attempt.Finish(ctx, resultWith(assistantMessage(id, words)), textStart(id), textContent(id, words), textEnd(id)); err != nil {
		t.Fatal(err)
	}
	place.Step = "finish"
	seq, _, err := l.Seal(ctx, place, &agui.RunFinished{ThreadID: run.Thread.ID, RunID: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshots(l).FinalCheckpoint(ctx, run.Thread, mustSnapshot(t)(snapshots(l).At(ctx, run.Thread, seq))); err != nil {
		t.Fatal(err)
	}
}

// mustSnapshot returns a function that ends the test on an error.
func mustSnapshot(t testing.TB) func(*snapshot.Snapshot, error) *snapshot.Snapshot {
	return func(r *snapshot.Snapshot, err error) *snapshot.Snapshot {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// openings are the ways to open a thread whose last run has ended.
var openings = map[string]func(ctx context.Context, l *stream.Log, f *stream.Follower, last stream.Run) error{
	"a new run": func(ctx context.Context, l *stream.Log, _ *stream.Follower, last stream.Run) error {
		_, err := snapshots(l).Latest(ctx, last.Thread, 0) // to accept the input; the first step uses this snapshot
		return err
	},
	"the thread": func(ctx context.Context, _ *stream.Log, f *stream.Follower, last stream.Run) error {
		return readView(ctx, viewer(f).Thread(last.Thread, view.ThreadOptions{}))
	},
	"the last run joined": func(ctx context.Context, _ *stream.Log, f *stream.Follower, last stream.Run) error {
		return readView(ctx, viewer(f).Run(last, view.Options{Join: true}))
	},
	"the last run from its start": func(ctx context.Context, _ *stream.Log, f *stream.Follower, last stream.Run) error {
		return readView(ctx, viewer(f).Run(last, view.Options{}))
	},
}

// pageOf reads a page of events from the middle of a thread.
func pageOf(after stream.Cursor) func(context.Context, *stream.Log, *stream.Follower, stream.Run) error {
	return func(ctx context.Context, _ *stream.Log, f *stream.Follower, last stream.Run) error {
		v := viewer(f).Thread(last.Thread, view.ThreadOptions{After: &after})
		defer v.Close()
		for events := 0; events < 10; {
			frames, err := v.NextPast(ctx)
			if err != nil {
				return err
			}
			events += len(frames)
		}
		return nil
	}
}

// readView reads a view to its end.
func readView(ctx context.Context, v *view.View) error {
	defer v.Close()
	for {
		if _, err := v.NextPast(ctx); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// measureOpening counts the messages that a process without a cache receives from the log when it
// opens a thread: records and parts of checkpoints.
func measureOpening(t testing.TB, ctx context.Context, s *server.Server, last stream.Run, open func(context.Context, *stream.Log, *stream.Follower, stream.Run) error) uint64 {
	t.Helper()
	l := streamtest.OpenOn(t, s)
	f := streamtest.Follow(t, l)
	before := l.Conn().Stats().InMsgs
	if err := open(ctx, l, f, last); err != nil {
		t.Fatal(err)
	}
	return l.Conn().Stats().InMsgs - before
}

// TestLongThreadOpensFromCheckpoint: opening a thread of 400 runs costs no more than the
// records after its last checkpoint, for each kind of reader.
func TestLongThreadOpensFromCheckpoint(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := streamtest.Server(t)
	l := streamtest.OpenOn(t, s)
	last := writeLongThread(t, ctx, l, stream.Thread{Tenant: "t", ID: "long"}, 400)
	early, err := l.ReadTo(ctx, stream.Run{Thread: last.Thread, ID: "r40"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	const bound = 400 // of some 2,000 records: 64 KiB of them may follow the last checkpoint
	for name, open := range openings {
		if n := measureOpening(t, ctx, s, last, open); n > bound {
			t.Errorf("%s: got %d messages from the log, want at most %d", name, n, bound)
		}
	}
	// A page is read without the records after it. The conversation at the beginning of a run is
	// reduced from the thread's beginning if no checkpoint is as old. Batches are read ahead; the
	// second has 512 records.
	before := int(early[0].Seq)
	if n := measureOpening(t, ctx, s, last, pageOf(l.CursorAt(early[1].Seq))); n > uint64(before+3*bound) {
		t.Errorf("page after the 40th run: got %d messages from the log, want at most %d", n, before+3*bound)
	}
}

// TestSnapshotsAreShared: concurrent readers that need the same snapshot share one reduction.
func TestSnapshotsAreShared(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	s := streamtest.Server(t)
	last := writeLongThread(t, ctx, streamtest.OpenOn(t, s), thread, 40)
	l := streamtest.OpenOn(t, s)
	seq := mustSnapshot(t)(snapshots(streamtest.OpenOn(t, s)).Latest(ctx, thread, 0)).Seq
	before := l.Conn().Stats().InMsgs
	var viewers sync.WaitGroup
	for range 100 {
		viewers.Go(func() {
			if _, err := snapshots(l).At(ctx, last.Thread, seq); err != nil {
				t.Error(err)
			}
		})
	}
	viewers.Wait()
	if n := l.Conn().Stats().InMsgs - before; n > 300 {
		t.Errorf("messages from the log for 100 readers: got %d, want at most 300", n)
	}
	impatient, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := snapshots(streamtest.OpenOn(t, s)).At(impatient, last.Thread, seq); err == nil {
		t.Error("At with an ended context: got no error, want one")
	}
}

func BenchmarkOpenThread(b *testing.B) {
	ctx := context.Background()
	for _, runs := range []int{10, 1000} {
		s := streamtest.Server(b)
		last := writeLongThread(b, ctx, streamtest.OpenOn(b, s), stream.Thread{Tenant: "t", ID: "long"}, runs)
		for name, open := range openings {
			b.Run(fmt.Sprintf("%s/runs=%d", name, runs), func(b *testing.B) {
				var messages uint64
				for b.Loop() {
					messages += measureOpening(b, ctx, s, last, open)
				}
				b.ReportMetric(float64(messages)/float64(b.N), "messages/op")
			})
		}
	}
}
