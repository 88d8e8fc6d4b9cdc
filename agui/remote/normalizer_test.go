package remote

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
)

// stream returns events as an event stream.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// TestOldGeneration: the defects that clients before 1.0 accept are repaired in a stream without a
// version, and refused in one that declares 1.0.
func TestOldGeneration(t *testing.T) {
	t.Parallel()
	rest := []string{
		`{"type":"REASONING_START","messageId":"s"}`,
		`{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}`,
		`{"type":"CUSTOM","name":"n"}`,
		`{"type":"STATE_DELTA","delta":[{"op":"add","path":"a","value":1}]}`,
		`{"type":"RUN_FINISHED","threadId":null}`,
	}
	got := run(t, serve(t, stream(append([]string{`{"type":"RUN_STARTED"}`}, rest...)...)), Call{Protocol: Version0})
	want := []string{"RUN_STARTED", "REASONING_START", "REASONING_MESSAGE_START", "CUSTOM", "REASONING_MESSAGE_END", "REASONING_END", "RUN_FINISHED"}
	if got.err != nil || !slices.Equal(got.types(), want) {
		t.Fatalf("got %q, %v, want %q", got.types(), got.err, want)
	}
	if first := got.events[0].Event.(*agui.RunStarted); first.ThreadID != "t" || first.RunID != "requested" {
		t.Errorf("RUN_STARTED = %+v, want the IDs of the input", first)
	}
	for i, e := range rest {
		if i == 0 || i == 1 { // these are valid as such
			continue
		}
		got := run(t, serve(t, started+stream(e)+finished), Call{})
		if got.err == nil {
			t.Errorf("%s in a stream of 1.0: got no error, want one", e)
		}
	}
}

// FuzzStream checks that any response ends in events of a valid order, or in an error.
func FuzzStream(f *testing.F) {
	f.Add(started + finished)
	f.Add(stream(`{"type":"RUN_STARTED"}`, `{"type":"THINKING_START"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"d"}`, `{"type":"RUN_FINISHED"}`))
	f.Add(started + `data: {"type":"STATE_DELTA","delta":[{"op":"x"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var verifier agui.Verifier
		r := &response{call: Call{Input: input}, limits: Limits{Events: 100, EventBytes: 10_000}.orDefault(), events: newNormalizer(input, false)}
		r.yield = func(e Event, _ error) bool {
			if err := verifier.Check(e.Event); err != nil {
				t.Errorf("yielded an event in a wrong order: %v", err)
			}
			if kept, foreign := agui.Strip(e.Event); kept == nil || len(foreign) > 0 {
				t.Errorf("yielded unknown material: %v", foreign)
			}
			if _, err := agui.Encode(e.Event); err != nil {
				t.Errorf("yielded an event that cannot be encoded: %v", err)
			}
			return true
		}
		if err := r.readEvents(strings.NewReader(text)); err == nil && !r.events.hasEnded {
			t.Error("a response without a terminal event is no error")
		}
	})
}
