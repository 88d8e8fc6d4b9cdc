package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// smallInput returns an input whose record has no blob.
func smallInput(id, text string) *stream.Input {
	m := agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(text)}
	return &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: id, Message: &m}}}}
}

// largeInput returns an input whose record has a blob.
func largeInput(id string) *stream.Input {
	text := agui.Message{ID: id, Role: agui.RoleUser, Content: agui.TextContent(markedText(300_000, id))}
	return &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: id, Message: &text}}}}
}

// storedBytes returns the bytes of all streams of a log: records, blobs and index.
func storedBytes(t *testing.T, l *stream.Log) (size uint64) {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	streams := js.ListStreams(testContext(t))
	for info := range streams.Info() {
		size += info.State.Bytes
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	return size
}

// TestWithdrawnProposalsTakeNoRoom: the content of refused inputs is removed. The same input again
// has its content.
func TestWithdrawnProposalsTakeNoRoom(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	propose := func(n byte) stream.Proposal {
		return must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{n}, largeInput(fmt.Sprint("u", n))))
	}
	propose(0) // the first record of the thread
	before := storedBytes(t, l)
	for n := range byte(10) {
		if err := l.Withdraw(ctx, propose(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	if grown := storedBytes(t, l) - before; grown > 30_000 {
		t.Errorf("log after ten withdrawn inputs of 300 KB: grown by %d bytes, want less than 30,000", grown)
	}
	again := propose(1)
	if in, err := l.Input(ctx, again.Seq); err != nil || in.Accepted.Tail[0].ID != "u1" {
		t.Errorf("the same input again: got %v, %v, want its content", in, err)
	}
	if err := l.Withdraw(ctx, again); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Input(ctx, again.Seq); err == nil {
		t.Error("withdrawn again: got its content, want an error")
	}
}

// TestSharedProposalIsNotWithdrawn: a proposal that a second request has found keeps its content, in
// whatever order the two requests end. The first proposal of a thread keeps it as well, because it
// has the owner.
func TestSharedProposalIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	propose := func(n byte) stream.Proposal {
		return must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{n}, largeInput("u")))
	}
	first := propose(0)
	shared := propose(1)
	if found := propose(1); found != shared {
		t.Errorf("an equal proposal: got %v, want %v", found, shared)
	}
	if third := propose(1); third != shared {
		t.Errorf("a third one: got %v, want %v", third, shared)
	}
	other := propose(2) // has the same content, in another lane
	for _, p := range []stream.Proposal{first, shared, shared, other} {
		if err := l.Withdraw(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	for name, p := range map[string]stream.Proposal{"first of the thread": first, "shared": shared} {
		if _, err := l.Input(ctx, p.Seq); err != nil {
			t.Errorf("%s: got %v, want its content", name, err)
		}
	}
	if _, err := l.Input(ctx, other.Seq); err == nil {
		t.Error("withdrawn: got its content, want an error")
	}
}

// TestWithdrawnContentLeavesTheFiles: the files of the server have nothing of a small input that was
// refused. They have the input that was accepted, which shows that the search finds it.
func TestWithdrawnContentLeavesTheFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := streamtest.ServerAt(t, dir)
	ctx, l := testContext(t), streamtest.OpenOn(t, server)
	for n, text := range []string{"the accepted text", "the refused text", "the last text"} {
		p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{byte(n)}, smallInput(fmt.Sprint("u", n), text)))
		if n == 1 {
			if err := l.Withdraw(ctx, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	server.Shutdown()
	server.WaitForShutdown()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, text := range []string{"the accepted text", "the refused text", "the last text"} {
			if bytes.Contains(content, []byte(text)) {
				found = append(found, text)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "texts in the files", found, []string{"the accepted text", "the last text"})
}

// TestReadersContinueAfterAWithdrawnProposal: a position that was the end of the thread stays valid
// after the proposal there was withdrawn: for a reader with a cursor, a snapshot, a checkpoint in
// memory, and a reader in the middle of the past. After the thread's purge it is gone.
func TestReadersContinueAfterAWithdrawnProposal(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	store, follower := snapshots(l), streamtest.Follow(t, l)
	appendRun(t, l, 1, "u1", "a1")
	other := stream.Run{Thread: thread, ID: "refused"}
	p := must[stream.Proposal](t)(l.ProposeInput(ctx, other, [32]byte{1}, smallInput("u2", "refused")))
	base := must[*snapshot.Snapshot](t)(store.Latest(ctx, thread, p.Seq)) // in the store's memory from here on
	if err := l.Withdraw(ctx, p); err != nil {
		t.Fatal(err)
	}
	if rec := must[*stream.Record](t)(l.At(ctx, p.Seq)); rec != nil {
		t.Fatalf("the withdrawn proposal is in the log: %v", rec)
	}
	cursor := l.CursorAt(p.Seq)
	if err := l.Check(ctx, thread, cursor); err != nil {
		t.Errorf("Check: %v", err)
	}
	for name, s := range map[string]*snapshot.Store{"that has it in memory": store, "that folds the records": snapshots(l)} {
		if snap, err := s.AtCursor(ctx, thread, p.Seq); err != nil || len(snap.Entries) != len(base.Entries) {
			t.Errorf("snapshot of a store %s: got %v, %v, want that of before", name, snap, err)
		}
	}
	tail := follower.ThreadTail(thread)
	defer tail.Close()
	for rec, err := range tail.Between(ctx, p.Seq, p.Seq) { // as if the proposal had been the last record
		t.Errorf("the range of the withdrawn proposal: got %v, %v, want nothing", rec, err)
	}
	v := viewer(follower).Thread(thread, view.ThreadOptions{After: &cursor})
	defer v.Close()
	for {
		frames, err := v.NextPast(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("view at the cursor: %v", err)
		}
		t.Errorf("view at the cursor: got %v, want nothing", frames)
	}
	appendRun(t, l, 2, "u3", "a3")
	snap := must[*snapshot.Snapshot](t)(store.Latest(ctx, thread, 0))
	wantEqual(t, "entries after the next run", len(snap.Entries), len(base.Entries)+2)
	if err := store.Purge(ctx, thread); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(ctx, thread, cursor); !errors.Is(err, stream.ErrGone) {
		t.Errorf("Check after the purge: got %v, want ErrGone", err)
	}
}
