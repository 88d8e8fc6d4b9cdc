package stream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestPurgeRemovesThread: a purge removes all records, blobs and caches of a thread, on all nodes.
// Its ID then begins a new thread. Other threads are unchanged.
func TestPurgeRemovesThread(t *testing.T) {
	t.Parallel()
	ctx, server := testContext(t), streamtest.Server(t)
	l, elsewhere, neighbor := streamtest.OpenOn(t, server), streamtest.OpenOn(t, server), threadNamed(thread.ID+" too")
	large := []agui.Message{parseMessage("a1=" + strings.Repeat("x", 2*stream.MaxLine))}
	appendRunTo(t, l, neighbor, 1, parseMessages("u0"), parseMessages("a0"))
	appendRunTo(t, l, thread, 1, parseMessages("u1"), large)
	before := appendRunTo(t, l, thread, 2, append(parseMessages("u1"), large[0], parseMessage("u2")), parseMessages("a2"))
	if err := snapshots(l).FinalCheckpoint(ctx, thread, before); err != nil {
		t.Fatal(err)
	}
	known := must[*snapshot.Snapshot](t)(snapshots(elsewhere).Latest(ctx, thread, 0))
	follower := streamtest.Follow(t, elsewhere)
	events := availableEvents(t, viewer(follower).Thread(thread, view.ThreadOptions{}))
	cursor := events[len(events)-1].Cursor

	if err := snapshots(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "HasThread after the purge", must[bool](t)(elsewhere.HasThread(ctx, thread)), false)
	if remaining, err := blobs(t, l).List(ctx); !errors.Is(err, jetstream.ErrNoObjectsFound) {
		t.Errorf("blobs after the purge: got %v (%v), want none", remaining, err)
	}
	wantGone := func(when string) {
		t.Helper()
		v := viewer(follower).Thread(thread, view.ThreadOptions{After: &cursor})
		defer v.Close()
		if _, err := v.NextPast(ctx); !errors.Is(err, stream.ErrGone) {
			t.Errorf("%s: view at an old cursor: got %v, want ErrGone", when, err)
		}
		if err := l.Check(ctx, thread, cursor); !errors.Is(err, stream.ErrGone) {
			t.Errorf("%s: Check of an old cursor: got %v, want ErrGone", when, err)
		}
		if _, err := snapshots(l).AtCursor(ctx, thread, known.Seq); !errors.Is(err, stream.ErrGone) {
			t.Errorf("%s: snapshot at an old position: got %v, want ErrGone", when, err)
		}
	}
	wantGone("after the purge")

	appendRunTo(t, l, thread, 1, parseMessages("u9"), parseMessages("a9"))
	if err := snapshots(elsewhere).FinalCheckpoint(ctx, thread, known); err != nil { // by a worker that has not received the purge
		t.Fatal(err)
	}
	for name, at := range map[string]*stream.Log{"here": l, "where it was known": elsewhere, "on a new node": streamtest.OpenOn(t, server)} {
		wantConversation(t, "the new thread, "+name, at, thread, "u9 a9")
		snap := must[*snapshot.Snapshot](t)(snapshots(at).Latest(ctx, thread, 0))
		wantEqual(t, fmt.Sprintf("runs of the new thread, %s: number of runs", name), len(snap.Runs), 1)
	}
	wantGone("after the new beginning")
	wantConversation(t, "the neighbor", l, neighbor, "u0 a0")
	if err := snapshots(l).Purge(ctx, threadNamed("unknown")); err != nil {
		t.Errorf("purge of an unknown thread: got %v", err)
	}
}

// TestPurgeRemovesBlobsOfFencedAttempts: the blob of a fenced attempt is deleted with its thread,
// although no record refers to it. The blobs of other threads stay.
func TestPurgeRemovesBlobsOfFencedAttempts(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	neighbor := threadNamed(thread.ID + "-too")
	appendRunTo(t, l, neighbor, 1, parseMessages("u0"), []agui.Message{parseMessage("a0=" + strings.Repeat("y", 2*stream.MaxLine))})
	appendRun(t, l, 1, "u1", "a1")
	of := place("1/model", 0)
	of.Run.ID = "run-2"
	fenced := begin(t, ctx, l, of)
	newer := begin(t, ctx, l, of)
	if _, err := fenced.Finish(ctx, &stream.Result{Answer: json.RawMessage(`"` + strings.Repeat("x", 2*stream.MaxLine) + `"`)}); !errors.Is(err, stream.ErrFenced) {
		t.Fatalf("Finish of the fenced attempt = %v, want ErrFenced", err)
	}
	if _, err := newer.Finish(ctx, &stream.Result{}); err != nil {
		t.Fatal(err)
	}
	if n := len(must[[]*jetstream.ObjectInfo](t)(blobs(t, l).List(ctx))); n != 2 {
		t.Fatalf("number of blobs = %d, want 2: the fenced attempt's and the neighbor's", n)
	}
	if err := snapshots(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	remaining := must[[]*jetstream.ObjectInfo](t)(blobs(t, l).List(ctx))
	mustEqual(t, "number of blobs after the purge", len(remaining), 1)
	if !strings.HasPrefix(remaining[0].Name, l.ThreadSubject(neighbor)+".") {
		t.Errorf("blob after the purge = %q, want prefix %q", remaining[0].Name, l.ThreadSubject(neighbor)+".")
	}
	keys := must[jetstream.KeyLister](t)(l.Index().ListKeysFiltered(ctx, "blob.>"))
	var names []string
	for key := range keys.Keys() {
		names = append(names, key)
	}
	if len(names) != 1 {
		t.Errorf("the index lists the blobs %v, want the neighbor's", names)
	}
}

// TestFuturePositionsAreNotPurged: a position that the log has not reached is not a purged one.
func TestFuturePositionsAreNotPurged(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	appendRun(t, l, 1, "u1", "a1")
	if err := l.Check(ctx, thread, l.CursorAt(1000)); err != nil {
		t.Error(err)
	}
	if _, err := snapshots(l).AtCursor(ctx, thread, 1000); !errors.Is(err, stream.ErrInvalidCursor) {
		t.Errorf("AtCursor of a future position: got %v, want %v", err, stream.ErrInvalidCursor)
	}
	if _, err := snapshots(l).AtCursor(ctx, threadNamed("other"), 1); !errors.Is(err, stream.ErrInvalidCursor) {
		t.Errorf("AtCursor of another thread: got %v, want %v", err, stream.ErrInvalidCursor)
	}
}

// TestPurgeRemovesTitles: after the purge of a thread, no message of any stream of NATS has its title,
// an earlier one, or its metadata, although they are not encrypted. Those of its neighbor stay, which
// shows that the search finds them.
func TestPurgeRemovesTitles(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	for name, of := range map[string]stream.Thread{"purged": thread, "kept": threadNamed("neighbor")} {
		run := stream.Run{Thread: of, ID: "r"}
		input := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, smallInput("u1", "the "+name+" message")))
		p := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
		must[uint64](t)(snapshots(l).OpenRun(ctx, p, stream.Opening{Agent: "a", Input: input.Seq}))
		for _, title := range []string{"the " + name + " first title", "the " + name + " title"} {
			must[*stream.Description](t)(l.SetTitle(ctx, of, title))
		}
		must[*stream.Description](t)(l.SetMetadata(ctx, of, map[string]string{"note": "the " + name + " note"}))
		if _, _, err := l.Seal(ctx, p, &agui.RunFinished{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := snapshots(l).Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	found := storedTexts(t, l, "the purged message", "the purged first title", "the purged title", "the purged note", "the kept message", "the kept title", "the kept note")
	wantEqual(t, "texts in NATS", found, []string{"the kept message", "the kept title", "the kept note"})
}

// storedTexts returns those of the texts that a message of a stream has, in their order.
func storedTexts(t *testing.T, l *stream.Log, texts ...string) []string {
	t.Helper()
	ctx := testContext(t)
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	found := map[string]bool{}
	for info := range js.ListStreams(ctx).Info() {
		s := must[jetstream.Stream](t)(js.Stream(ctx, info.Config.Name))
		for seq := max(info.State.FirstSeq, 1); seq <= info.State.LastSeq; seq++ {
			msg, err := s.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts {
				found[text] = found[text] || bytes.Contains(msg.Data, []byte(text))
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return !found[text] })
}
