package stream_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// TestRestatedMessages: an attempt that restates its messages sends no reader its own snapshot. At the end of
// the run all readers have the conversation of the log, with the message that was there before, wherever
// they began to read.
func TestRestatedMessages(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	follower := streamtest.Follow(t, l)
	opened := must[uint64](t)(l.OpenStep(ctx, place("1/model", 0), stream.Opening{RunID: run.ID, Input: proposeInput(t, ctx, l), ProtocolVersion: "1.0"},
		&agui.RunStarted{ThreadID: thread.ID, RunID: run.ID}))
	a := begin(t, ctx, l, place("1/model", opened))
	restated := agui.Message{ID: "m1", Role: agui.RoleAssistant, Content: agui.TextContent("Hello")}
	if err := a.Emit(ctx, textStart("m0"), textContent("m0", "Hel"), textEnd("m0"), &agui.MessagesSnapshot{Messages: []agui.Message{restated}}); err != nil {
		t.Fatal(err)
	}
	if err := a.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	seq := must[uint64](t)(a.Finish(ctx, &stream.Result{Messages: []agui.Message{restated}}))
	if _, _, err := l.Seal(ctx, place("finish", seq), &agui.RunFinished{ThreadID: thread.ID, RunID: run.ID}); err != nil {
		t.Fatal(err)
	}
	frames := readAll(t, ctx, follower, view.Options{})
	if n := len(frames); frames[n-2].Type != agui.EventMessagesSnapshot || !strings.Contains(string(frames[n-2].Event), "user") {
		t.Errorf("the last but one event is %s, want a snapshot of the conversation", frames[n-2].Event)
	}
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
		if f.Type == agui.EventMessagesSnapshot && i != len(frames)-2 {
			t.Errorf("event %d is %s, want no snapshot before the end", i, f.Event)
		}
		if i < len(frames)-1 {
			after := f.Cursor
			wantSameFrames(t, append(slices.Clone(frames[:i+1]), readAll(t, ctx, follower, view.Options{After: &after})...), frames)
		}
	}
	got := client.Messages()
	if last := got[len(got)-1]; len(got) != 2 || last.ID != "m1" || last.Content.Text() != "Hello" {
		t.Errorf("messages of a client = %s, want the user's and m1", asJSON(t, got))
	}
}
