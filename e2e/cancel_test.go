package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A cancel in mid-stream is there in under a second, keeps what was said, and ends as each
// generation of clients understands it.
func TestCancel(t *testing.T) {
	// Not in parallel: it measures.
	for _, g := range generations {
		t.Run(g.name, func(t *testing.T) {
			in, answer := newInput(say("Slowly, please.")), long(4000)
			sharedModel.attempts(t, in.Messages[0].Content, pours(answer))
			d := g.drive(t, shared, script{ThreadID: in.ThreadID, Runs: []scriptedRun{{RunID: in.RunID, Messages: in.Messages}}})
			d.until(t, "TEXT_MESSAGE_CONTENT", 5)
			asked := time.Now()
			if got := shared.cancel(t, in); got != http.StatusAccepted {
				t.Fatalf("cancel: %d, want 202", got)
			}
			end := d.finish(t)[0]
			if took := time.Since(asked); took > time.Second {
				t.Errorf("the run ended %s after the cancel", took)
			}
			wantCancelled(t, g, d)
			wantPartial(t, in, end.Messages, answer)
			if got := shared.cancel(t, in); got != http.StatusAccepted {
				t.Errorf("cancel again: %d, want 202", got)
			}
			wantGoesOn(t, g, in.ThreadID, end.Messages)
		})
	}
}

func wantCancelled(t *testing.T, g generation, d *driven) {
	t.Helper()
	if g.legacy {
		errors := d.events(0, "RUN_ERROR")
		if len(errors) != 1 || (event{Data: errors[0]}).member("code") != "cancelled" {
			t.Errorf("events %s %s, want RUN_ERROR cancelled", d.types(0), errors)
		}
		return
	}
	events := d.events(0, "RUN_FINISHED")
	if len(events) != 1 || outcome(event{Data: events[0]}) != "cancelled" {
		t.Errorf("events %s %s, want RUN_FINISHED with the outcome cancelled", d.types(0), events)
	}
}

// outcome returns the type of the outcome in a RUN_FINISHED; empty = it has none.
func outcome(e event) string {
	var finished struct {
		Outcome struct {
			Type string `json:"type"`
		} `json:"outcome"`
	}
	_ = json.Unmarshal(e.Data, &finished)
	return finished.Outcome.Type
}

// wantPartial checks that a beginning of the answer is kept.
func wantPartial(t *testing.T, in input, got []message, answer string) {
	t.Helper()
	if len(got) != 2 || got[1].Role != "assistant" || got[1].Content == "" || !strings.HasPrefix(answer, got[1].Content) || got[1].Content == answer {
		t.Errorf("messages %+v, want the question and the beginning of the answer", got)
	}
}

// wantGoesOn checks that the thread takes the next run, and that the model hears the kept part.
func wantGoesOn(t *testing.T, g generation, thread string, had []message) {
	t.Helper()
	next, answer := user(say("And now?")), say("Now this.")
	sharedModel.answerWith(t, next.Content, answer)
	d := g.drive(t, shared, script{ThreadID: thread, Messages: had, Runs: []scriptedRun{{RunID: "run-2", Add: []message{next}}}})
	wantMessages(t, append(had, next, says(answer)), d.finish(t)[0].Messages)
	calls := sharedModel.calls(t, next.Content)
	if len(calls) != 1 {
		t.Fatalf("%d model calls, want 1", len(calls))
	}
	wantHeard(t, calls[0], had[0].Content, had[1].Content, next.Content)
}

func TestCancelOfFinishedRun(t *testing.T) {
	t.Parallel()
	in := newInput(say("Quick?"))
	sharedModel.answerWith(t, in.Messages[0].Content, say("Yes."))
	all := shared.run(t, in)
	if got := shared.cancel(t, in); got != http.StatusAccepted {
		t.Errorf("cancel: %d, want 202", got)
	}
	same(t, "after the cancel", all, shared.run(t, in))
}

// A client that goes away cancels nothing.
func TestDisconnectIsNotCancel(t *testing.T) {
	t.Parallel()
	in, answer := newInput(say("Slowly, please.")), long(500)
	sharedModel.attempts(t, in.Messages[0].Content, pours(answer))
	f := shared.follow(t, in)
	f.contents(t, 3)
	f.cut()
	f.finish(t)
	wantMessages(t, append(in.Messages, says(answer)), show(t, in.Messages, f.events))
}

// A run that waits to try its model again is cancelled as fast as one that speaks.
func TestCancelBetweenAttempts(t *testing.T) {
	in := newInput(say("May I?"))
	sharedModel.answer(t, fixture{Match: match{UserMessage: in.Messages[0].Content}, Response: fails(500).Response})
	f := shared.follow(t, in)
	f.until(t, func(e event) bool { return e.Type == "STEP_STARTED" })
	for len(sharedModel.calls(t, in.Messages[0].Content)) < 2 {
		if t.Context().Err() != nil {
			t.Fatal("the model is not called again")
		}
	}
	asked := time.Now()
	if got := shared.cancel(t, in); got != http.StatusAccepted {
		t.Fatalf("cancel: %d, want 202", got)
	}
	f.finish(t)
	if took := time.Since(asked); took > time.Second {
		t.Errorf("the run ended %s after the cancel", took)
	}
	if last := f.events[len(f.events)-1]; !strings.Contains(string(last.Data), `"cancelled"`) {
		t.Errorf("it ended with %s", last.Data)
	}
	wantMessages(t, in.Messages, show(t, in.Messages, f.events))
}

// A cancel that comes with the very first event is kept.
func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	for range 10 {
		in, answer := newInput(say("Slowly, please.")), long(4000)
		sharedModel.attempts(t, in.Messages[0].Content, pours(answer))
		f := shared.follow(t, in)
		f.until(t, func(e event) bool { return e.Type == "RUN_STARTED" })
		if got := shared.cancel(t, in); got != http.StatusAccepted {
			t.Fatalf("cancel: %d, want 202", got)
		}
		f.finish(t)
		if last := f.events[len(f.events)-1]; last.Type != "RUN_FINISHED" || !strings.Contains(string(last.Data), `"cancelled"`) {
			t.Errorf("it ended with %s", last.Data)
		}
	}
}
