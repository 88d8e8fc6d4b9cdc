package runs

import (
	"net/http"
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// exchange returns a question and the model's answer to it.
func exchange(t *testing.T) (question, answer kit.Message) {
	t.Helper()
	question, answer = kit.UserMessage(kit.Marked("What about this?")), kit.AssistantMessage(kit.Marked("This."))
	kit.SharedModel.AnswerWith(t, question.Content, answer.Content)
	return question, answer
}

// TestForksOfStockClients: stock clients fork a thread. One client has the whole history, the other
// gets it from the fork. Both can continue, also after the parent was deleted.
func TestForksOfStockClients(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		q1, a1 := exchange(t)
		q2, a2 := exchange(t)
		parent := kit.NewThread()
		ends := g.Drive(t, kit.Shared, kit.Script{ThreadID: parent, Runs: []kit.ScriptedRun{{RunID: "run-1", Messages: []kit.Message{q1}}, {RunID: "run-2", Add: []kit.Message{q2}}}}).Finish(t)
		kit.WantMessages(t, []kit.Message{q1, a1, q2, a2}, ends[1].Messages)

		props := map[string]any{"forwardedProps": kit.PerdureProps(map[string]any{"parentRunId": "run-1", "parentThreadId": parent})}
		for name, had := range map[string][]kit.Message{"whole": ends[0].Messages, "nothing": nil} {
			t.Run(name, func(t *testing.T) {
				q3, a3 := exchange(t)
				q4, a4 := exchange(t)
				fork := kit.NewThread()
				d := g.Drive(t, kit.Shared, kit.Script{ThreadID: fork, Runs: []kit.ScriptedRun{
					{RunID: "run-3", Messages: append(slices.Clone(had), q3), Parameters: props}, {RunID: "run-4", Add: []kit.Message{q4}},
				}})
				got := d.Finish(t)
				kit.WantMessages(t, []kit.Message{q1, a1, q3, a3}, got[0].Messages)
				kit.WantMessages(t, []kit.Message{q1, a1, q3, a3, q4, a4}, got[1].Messages)
				if shown := len(d.Events(0, "MESSAGES_SNAPSHOT")); shown > 0 != (had == nil) {
					t.Errorf("number of shown conversations = %d, want some: %t", shown, had == nil)
				}
				wantModelMessages(t, q4, q1, a1, q3, a3, q4)
				kit.WantMessages(t, []kit.Message{q1, a1, q3, a3, q4, a4}, kit.Shared.MessagesOf(t, fork))
			})
		}
		kit.WantMessages(t, []kit.Message{q1, a1, q2, a2}, kit.Shared.MessagesOf(t, parent))
	})
}

// wantModelMessages checks the messages of the model call with a question.
func wantModelMessages(t *testing.T, question kit.Message, want ...kit.Message) {
	t.Helper()
	calls := kit.SharedModel.Calls(t, question.Content)
	if len(calls) != 1 {
		t.Fatalf("number of model calls = %d, want 1", len(calls))
	}
	var received, texts []string
	for _, m := range calls[0].Body.Messages {
		if m.Role != "system" {
			received = append(received, m.Text())
		}
	}
	for _, m := range want {
		texts = append(texts, m.Content)
	}
	if !slices.Equal(received, texts) {
		t.Errorf("the model received %q, want %q", received, texts)
	}
}

// TestForkSurvivesDeletedParent: a fork that a console makes waits for its first run. It outlives
// its parent. The deleted parent returns 404 and may begin anew.
func TestForkSurvivesDeletedParent(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Answer me."))
	answer := kit.AssistantMessage(kit.Marked("Here you are."))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, answer.Content)
	events := kit.Shared.Run(t, in)
	resp, err := kit.Shared.Post(t.Context(), "/v1/threads/"+in.ThreadID+"/runs/"+in.RunID+"/fork", map[string]string{"threadId": in.ThreadID + "-fork"})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("fork: got %s, want %d", resp.Status, http.StatusCreated)
	}
	fork := kit.Input{ThreadID: in.ThreadID + "-fork", RunID: "run-1", ProtocolVersion: "1.0"}
	reader := kit.Shared.FollowThread(t, fork)
	if got := kit.Shared.Delete(t, in.ThreadID); got != http.StatusNoContent {
		t.Fatalf("delete: got %d, want %d", got, http.StatusNoContent)
	}
	resp, err = kit.Shared.Get(t.Context(), kit.EventsPath(in), events[0].ID)
	if p := kit.ReadProblem(t, resp, err); p.Status != http.StatusGone || p.Code != "gone" {
		t.Errorf("cursor of the deleted thread: got %+v, want gone", p)
	}

	question, then := exchange(t)
	fork.Messages = []kit.Message{in.Messages[0], question}
	kit.Shared.Threads.Add(fork.ThreadID)
	kit.Shared.Run(t, fork)
	wantModelMessages(t, question, in.Messages[0], answer, question)
	kit.WantMessages(t, []kit.Message{in.Messages[0], answer, question, then}, kit.Shared.MessagesOf(t, fork.ThreadID))
	for ends := 0; ends < 2; {
		e, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Terminal() {
			ends++
		}
	}
	kit.WantMessages(t, []kit.Message{in.Messages[0], answer}, kit.ShownMessages(t, nil, reader.Events[:4]))

	anew := kit.NewInput(kit.Marked("Who are you?"))
	anew.ThreadID, anew.RunID = in.ThreadID, in.RunID
	kit.SharedModel.AnswerWith(t, anew.Messages[0].Content, "Nobody.")
	kit.Shared.Run(t, anew)
	kit.WantMessages(t, []kit.Message{anew.Messages[0], kit.AssistantMessage("Nobody.")}, kit.Shared.MessagesOf(t, in.ThreadID))
}

// TestDeleteStopsRun: deleting a thread stops its work in any state, and the thread stays
// deleted.
func TestDeleteStopsRun(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, in kit.Input) []*kit.Follower{
		"a run that speaks": func(t *testing.T, in kit.Input) []*kit.Follower {
			kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(4000)))
			f := kit.Shared.Follow(t, in)
			f.UntilContent(t, 3)
			return []*kit.Follower{f}
		},
		"runs that wait in line": func(t *testing.T, in kit.Input) []*kit.Follower {
			kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(4000)))
			f := kit.Shared.Follow(t, in)
			f.UntilContent(t, 3)
			next := in.NextRun("run-2", "enqueue", kit.UserMessage(kit.Marked("And then?")))
			kit.SharedModel.AnswerInOrder(t, next.Messages[1].Content, kit.SlowAnswer(kit.LongText(4000)))
			return []*kit.Follower{f, kit.Shared.Follow(t, next)}
		},
		"questions": func(t *testing.T, in kit.Input) []*kit.Follower {
			kit.ScriptCalculations(t, in.Messages[0].Content, "Done.", "1+7")
			kit.InterruptsOf(t, kit.Shared.RunAgent(t, kit.CarefulPath, in))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := kit.NewInput(kit.Marked("Do something."))
			readers := begin(t, in)
			if got := kit.Shared.Delete(t, in.ThreadID); got != http.StatusNoContent {
				t.Fatalf("delete: got %d, want %d", got, http.StatusNoContent)
			}
			for _, f := range readers {
				f.Finish(t)
				if got := kit.Outcome(f.Events[len(f.Events)-1]); got != "cancelled" {
					t.Errorf("outcome of the run = %q, want cancelled", got)
				}
			}
			resp, err := kit.Shared.Get(t.Context(), "/v1/threads/"+in.ThreadID, "")
			if p := kit.ReadProblem(t, resp, err); p.Code != "unknown_thread" {
				t.Errorf("deleted thread: got %+v, want unknown_thread", p)
			}
			var left kit.InboxPage
			kit.Shared.GetJSON(t, "/v1/approvals?thread="+in.ThreadID, &left)
			if len(left.Items) > 0 {
				t.Errorf("pending approvals: got %+v, want none", left.Items)
			}
		})
	}
}
