package stream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// markedText returns a text of n bytes that ends in mark, so that a truncated text is noticed.
func markedText(n int, mark string) string { return strings.Repeat("x", n-len(mark)) + mark }

// blobs returns the object store with the large contents of a log.
func blobs(t *testing.T, l *stream.Log) jetstream.ObjectStore {
	t.Helper()
	js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
	return must[jetstream.ObjectStore](t)(js.ObjectStore(testContext(t), "PERDURE_blobs"))
}

// TestLargeContentIsComplete: content that is too large for a frame is stored as a blob. Live
// readers, later readers, the conversation, and the next attempt of the step get all of it.
func TestLargeContentIsComplete(t *testing.T) {
	t.Parallel()
	for _, size := range []int{stream.MaxLine - 1000, stream.MaxLine - 1, stream.MaxLine, stream.MaxLine + 1, 3 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			follower := streamtest.Follow(t, l)
			live := viewer(follower).Run(run, view.Options{})
			defer live.Close()

			question := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(markedText(size, "asked"))}
			p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "u1", Message: &question}}}}))
			must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), stream.Opening{RunID: run.ID, Input: p.Seq, ProtocolVersion: "1.0"},
				&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}, &agui.Custom{Name: "note", Value: []byte(`"` + markedText(size, "opened") + `"`)}))
			a := begin(t, ctx, l, place("1/model", 0))
			answer := agui.Message{ID: "m", Role: agui.RoleAssistant, Content: agui.TextContent(markedText(size, "answered"))}
			for _, e := range []agui.Event{textStart("m"), textContent("m", "short"), textContent("m", markedText(size, "said")), textContent("m", "short")} {
				if err := a.Emit(ctx, e); err != nil {
					t.Fatal(err)
				}
			}
			seq := must[uint64](t)(a.Finish(ctx, &stream.Result{Messages: []agui.Message{answer}, Answer: []byte(`{"n":1}`)}, textContent("m", markedText(size, "last")), textEnd("m")))
			if _, done, err := l.Begin(ctx, place("1/model", 0)); err != nil || done == nil {
				t.Fatalf("retry of a finished step: got %v, %v, want its result", done, err)
			} else {
				var r stream.Result
				if err := done.Result(ctx, &r); err != nil || r.Messages[0].Content.Text() != answer.Content.Text() || string(r.Answer) != `{"n":1}` {
					t.Errorf("result at the retry: got %+v, %v, want the first attempt's", r, err)
				}
			}
			if _, _, err := l.Seal(ctx, place("end", seq), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
				t.Fatal(err)
			}
			want := `RUN_STARTED CUSTOM:opened" TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT:said TEXT_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT:last TEXT_MESSAGE_END RUN_FINISHED`
			watched, err := readOn(ctx, live)
			if got := textEnds(t, watched, size); got != want {
				t.Errorf("events of a live reader (%v) = %q, want %q", err, got, want)
			}
			if got := textEnds(t, readAll(t, ctx, follower, view.Options{}), size); got != want {
				t.Errorf("events of a later reader = %q, want %q", got, want)
			}
			m := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0)).Messages()
			if len(m) != 2 || m[0].Content.Text() != question.Content.Text() || m[1].Content.Text() != answer.Content.Text() {
				t.Errorf("conversation: got %d messages, want 2 with the whole content", len(m))
			}
		})
	}
}

// textEnds lists the types of the events, and the ends of the texts of the given size.
func textEnds(t *testing.T, frames []view.Frame, size int) string {
	t.Helper()
	var all []string
	for _, f := range frames {
		s := string(f.Type)
		var content string
		switch e := must[agui.Event](t)(agui.Decode(f.Event)).(type) {
		case *agui.TextMessageContent:
			content = e.Delta
		case *agui.Custom:
			content = string(e.Value[1:])
		}
		if len(content) >= size {
			s += ":" + strings.TrimLeft(content, "x")
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

// TestEqualContentIsStoredOnce: equal content is one blob. Storing it again would remove it for
// its current readers.
func TestEqualContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	question := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(markedText(300_000, "asked"))}
	in := &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "u1", Message: &question}}}}
	var nuids []string
	for range 2 {
		must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, in))
		for _, info := range must[[]*jetstream.ObjectInfo](t)(blobs(t, l).List(ctx)) {
			nuids = append(nuids, info.NUID)
		}
	}
	if len(nuids) != 2 || nuids[0] != nuids[1] {
		t.Errorf("blobs: got %v, want the same blob twice", nuids)
	}
}

func TestLostBlobIsLogLost(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	question := agui.Message{ID: "u1", Role: agui.RoleUser, Content: agui.TextContent(markedText(300_000, "asked"))}
	p := must[stream.Proposal](t)(l.ProposeInput(ctx, run, [32]byte{1}, &stream.Input{Accepted: stream.Acceptance{Tail: []stream.TailMessage{{ID: "u1", Message: &question}}}}))
	store := blobs(t, l)
	for _, info := range must[[]*jetstream.ObjectInfo](t)(store.List(ctx)) {
		js := must[jetstream.JetStream](t)(jetstream.New(l.Conn()))
		s := must[jetstream.Stream](t)(js.Stream(ctx, "OBJ_PERDURE_blobs"))
		if err := s.Purge(ctx); err != nil {
			t.Fatalf("purge %s: %v", info.Name, err)
		}
	}
	if _, err := l.Input(ctx, p.Seq); !errors.Is(err, stream.ErrLogLost) {
		t.Errorf("Input: got %v, want ErrLogLost", err)
	}
}

// TestLaggingReadersAreBoundedInBytes: a reader that lags holds one record at a time if the
// record's blob is large.
func TestLaggingReadersAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	tail := follower.Tail(run)
	defer tail.Close()
	var after uint64
	const count = 8
	for i := range count {
		after = must[uint64](t)(l.OpenStep(ctx, place(fmt.Sprint(i), after), nil, &agui.Custom{Name: "note", Value: []byte(`"` + markedText(1<<20, fmt.Sprint(i)) + `"`)}))
	}
	for i := range count {
		if records := must[[]*stream.Record](t)(tail.Next(ctx, time.Minute)); len(records) != 1 {
			t.Errorf("part %d: got %d records of 1 MiB, want 1", i, len(records))
		}
	}
}
