package stream_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

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
