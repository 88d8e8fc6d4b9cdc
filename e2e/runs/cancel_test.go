package runs

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// TestCancel: a cancel in mid-stream keeps the text so far, and ends the run as each client
// generation expects.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, g := range kit.Generations {
		t.Run(g.Name, func(t *testing.T) {
			in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(4000)
			kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
			d := g.Drive(t, kit.Shared, kit.Script{ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{{RunID: in.RunID, Messages: in.Messages}}})
			d.Until(t, "TEXT_MESSAGE_CONTENT", 5)
			cancelled := time.Now()
			if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
				t.Fatalf("cancel: %d, want 202", got)
			}
			end := d.Finish(t)[0]
			if took := time.Since(cancelled); took > kit.CancelTime {
				t.Errorf("time from the cancel to the end of the run = %s, want at most %s", took, kit.CancelTime)
			}
			kit.WantCancelled(t, g, d)
			kit.WantPartial(t, in, end.Messages, answer)
			if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
				t.Errorf("cancel again: %d, want 202", got)
			}
			wantThreadContinues(t, g, in.ThreadID, end.Messages)
		})
	}
}

// wantThreadContinues checks that the thread takes the next run, and that the model gets the kept
// part.
func wantThreadContinues(t *testing.T, g kit.Generation, thread string, had []kit.Message) {
	t.Helper()
	next, answer := kit.UserMessage(kit.Marked("And now?")), kit.Marked("Now this.")
	kit.SharedModel.AnswerWith(t, next.Content, answer)
	d := g.Drive(t, kit.Shared, kit.Script{ThreadID: thread, Messages: had, Runs: []kit.ScriptedRun{{RunID: "run-2", Add: []kit.Message{next}}}})
	kit.WantMessages(t, append(had, next, kit.AssistantMessage(answer)), d.Finish(t)[0].Messages)
	calls := kit.SharedModel.Calls(t, next.Content)
	if len(calls) != 1 {
		t.Fatalf("%d model calls, want 1", len(calls))
	}
	wantModelInput(t, calls[0], had[0].Content, had[1].Content, next.Content)
}

// TestCancelOfFinishedRun: a cancel of a finished run changes nothing.
func TestCancelOfFinishedRun(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Quick?"))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("Yes."))
	all := kit.Shared.Run(t, in)
	if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
		t.Errorf("cancel: %d, want 202", got)
	}
	kit.WantSameEvents(t, "after the cancel", all, kit.Shared.Run(t, in))
}

// TestDisconnectIsNotCancel: a client that disconnects does not cancel its run.
func TestDisconnectIsNotCancel(t *testing.T) {
	t.Parallel()
	in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(500)
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
	f := kit.Shared.Follow(t, in)
	f.UntilContent(t, 3)
	f.Cut()
	f.Finish(t)
	kit.WantMessages(t, append(in.Messages, kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, f.Events))
}

// TestCancelBetweenAttempts: a run that waits for the next attempt of its model call is cancelled
// as fast as one that streams.
func TestCancelBetweenAttempts(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("May I?"))
	kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content}, Response: kit.ErrorAnswer(500).Response})
	f := kit.Shared.Follow(t, in)
	f.Until(t, func(e kit.Event) bool { return e.Type == "STEP_STARTED" })
	// After the fourth attempt, the pause is longer than CancelTime.
	for len(kit.SharedModel.Calls(t, in.Messages[0].Content)) < 4 {
		if t.Context().Err() != nil {
			t.Fatal("second model call: got none, want one")
		}
	}
	cancelled := time.Now()
	if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
		t.Fatalf("cancel: %d, want 202", got)
	}
	f.Finish(t)
	if took := time.Since(cancelled); took > kit.CancelTime {
		t.Errorf("time from the cancel to the end of the run = %s, want at most %s", took, kit.CancelTime)
	}
	if last := f.Events[len(f.Events)-1]; !strings.Contains(string(last.Data), `"cancelled"`) {
		t.Errorf("end of the run = %s, want cancelled", last.Data)
	}
	kit.WantMessages(t, in.Messages, kit.ShownMessages(t, in.Messages, f.Events))
}

// TestCancelAtOnce: a cancel right after the first event takes effect.
func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	for range 10 {
		in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(4000)
		kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
		f := kit.Shared.Follow(t, in)
		f.Until(t, func(e kit.Event) bool { return e.Type == "RUN_STARTED" })
		if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
			t.Fatalf("cancel: %d, want 202", got)
		}
		f.Finish(t)
		if last := f.Events[len(f.Events)-1]; last.Type != "RUN_FINISHED" || !strings.Contains(string(last.Data), `"cancelled"`) {
			t.Errorf("end of the run = %s, want cancelled", last.Data)
		}
	}
}
