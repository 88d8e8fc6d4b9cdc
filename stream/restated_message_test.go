package stream_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestRestatedMessages: an attempt that restates its messages sends no reader its own snapshots. At the end of
// the run all readers have the conversation of the log in its order, wherever they began to read.
func TestRestatedMessages(t *testing.T) {
	t.Parallel()
	message := func(id string) agui.Message {
		return agui.Message{ID: id, Role: agui.RoleAssistant, Content: agui.TextContent("Hello")}
	}
	for name, c := range map[string]struct {
		restated []agui.Message
		moves    bool // messages precede the one that was streamed
	}{
		"other messages":  {[]agui.Message{message("m1")}, false},
		"messages before": {[]agui.Message{message("m1"), message("m0")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, l := testContext(t), streamtest.Open(t)
			follower := streamtest.Follow(t, l)
			opened := must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), stream.Opening{RunID: run.ID, Input: proposeInput(t, ctx, l), ProtocolVersion: "1.0"},
				&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
			a := begin(t, ctx, l, place("1/model", opened))
			events, snapshots := []agui.Event{textStart("m0"), textContent("m0", "Hello"), textEnd("m0")}, 1
			if c.moves {
				events, snapshots = append(events, &agui.MessagesSnapshot{}), 2
			}
			if err := a.Emit(ctx, append(events, &agui.MessagesSnapshot{Messages: c.restated})...); err != nil {
				t.Fatal(err)
			}
			if err := a.Flush(ctx); err != nil {
				t.Fatal(err)
			}
			seq := must[uint64](t)(a.Finish(ctx, &stream.Result{Messages: c.restated}))
			if _, _, err := l.Seal(ctx, place("finish", seq), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
				t.Fatal(err)
			}
			frames := readAll(t, ctx, follower, view.Options{})
			var verifier agui.Verifier
			client := agui.NewReducer(nil, nil)
			for i, f := range frames {
				e := must[agui.Event](t)(agui.Decode(f.Event))
				if err := verifier.Check(e); err != nil {
					t.Fatalf("%s is refused: %v\n%s", f.Event, err, formatFrames(frames))
				}
				if err := client.Apply(e); err != nil {
					t.Fatal(err)
				}
				if isLast := i >= len(frames)-1-snapshots && i < len(frames)-1; isLast != (f.Type == agui.EventMessagesSnapshot) {
					t.Errorf("event %d of %d is %s, want %d snapshots before the last event", i, len(frames), f.Event, snapshots)
				}
				if i < len(frames)-1 {
					after := f.Cursor
					wantSameFrames(t, append(slices.Clone(frames[:i+1]), readAll(t, ctx, follower, view.Options{After: &after})...), frames)
				}
			}
			got := client.Messages()
			if len(got) == 0 || got[0].Role != agui.RoleUser {
				t.Fatalf("messages of a client = %s, want the user's first", asJSON(t, got))
			}
			wantSameMessages(t, "at the end", got[1:], c.restated, frames)
		})
	}
}
