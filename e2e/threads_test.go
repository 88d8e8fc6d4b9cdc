package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// delete deletes a thread and returns the status of the answer.
func (p *endpoint) delete(t *testing.T, thread string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, p.url("/v1/threads/"+url.PathEscape(thread)), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// conversation returns what a thread has by now.
func (p *endpoint) conversation(t *testing.T, thread string) []message {
	t.Helper()
	var page struct {
		Items []message `json:"items"`
	}
	p.ask(t, "/v1/threads/"+url.PathEscape(thread)+"/messages", &page)
	return page.Items
}

// exchange returns a question, and the answer that the model has for it.
func exchange(t *testing.T) (question, answer message) {
	t.Helper()
	question, answer = user(say("What about this?")), says(say("This."))
	sharedModel.answerWith(t, question.Content, answer.Content)
	return question, answer
}

// Stock clients fork a thread: one that has the whole history, and one that has nothing and is
// shown what it goes on from. Either goes on, also when the parent is not there any more.
func TestForksOfStockClients(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		q1, a1 := exchange(t)
		q2, a2 := exchange(t)
		parent := newThread()
		ends := g.drive(t, shared, script{ThreadID: parent, Runs: []scriptedRun{{RunID: "run-1", Messages: []message{q1}}, {RunID: "run-2", Add: []message{q2}}}}).finish(t)
		wantMessages(t, []message{q1, a1, q2, a2}, ends[1].Messages)

		props := map[string]any{"forwardedProps": asks(map[string]any{"parentRunId": "run-1", "parentThreadId": parent})}
		for name, had := range map[string][]message{"whole": ends[0].Messages, "nothing": nil} {
			t.Run(name, func(t *testing.T) {
				q3, a3 := exchange(t)
				q4, a4 := exchange(t)
				fork := newThread()
				d := g.drive(t, shared, script{ThreadID: fork, Runs: []scriptedRun{
					{RunID: "run-3", Messages: append(slices.Clone(had), q3), Parameters: props}, {RunID: "run-4", Add: []message{q4}},
				}})
				got := d.finish(t)
				wantMessages(t, []message{q1, a1, q3, a3}, got[0].Messages)
				wantMessages(t, []message{q1, a1, q3, a3, q4, a4}, got[1].Messages)
				if shown := len(d.events(0, "MESSAGES_SNAPSHOT")); shown > 0 != (had == nil) {
					t.Errorf("the client is shown the conversation %d times", shown)
				}
				wantModelTold(t, q4, q1, a1, q3, a3, q4)
				wantMessages(t, []message{q1, a1, q3, a3, q4, a4}, shared.conversation(t, fork))
			})
		}
		wantMessages(t, []message{q1, a1, q2, a2}, shared.conversation(t, parent))
	})
}

// wantModelTold checks what the model was told when it was asked a question.
func wantModelTold(t *testing.T, question message, want ...message) {
	t.Helper()
	calls := sharedModel.calls(t, question.Content)
	if len(calls) != 1 {
		t.Fatalf("the model was asked %d times", len(calls))
	}
	var heard, told []string
	for _, m := range calls[0].Body.Messages {
		if m.Role != "system" {
			heard = append(heard, m.text())
		}
	}
	for _, m := range want {
		told = append(told, m.Content)
	}
	if !slices.Equal(heard, told) {
		t.Errorf("the model heard %q, want %q", heard, told)
	}
}

// A fork that a console makes waits for its first run; it lives on when its parent is deleted,
// which answers nobody any more and may begin anew.
func TestForkOutlivesItsParent(t *testing.T) {
	t.Parallel()
	in := newInput(say("Answer me."))
	answer := says(say("Here you are."))
	sharedModel.answerWith(t, in.Messages[0].Content, answer.Content)
	events := shared.run(t, in)
	resp, err := shared.post(t.Context(), "/v1/threads/"+in.ThreadID+"/runs/"+in.RunID+"/fork", map[string]string{"threadId": in.ThreadID + "-fork"})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status)
	}
	fork := input{ThreadID: in.ThreadID + "-fork", RunID: "run-1", ProtocolVersion: "1.0"}
	reader := shared.followThread(t, fork)
	if got := shared.delete(t, in.ThreadID); got != http.StatusNoContent {
		t.Fatalf("delete: %d", got)
	}
	resp, err = shared.get(t.Context(), eventsPath(in), events[0].ID)
	if p := refused(t, resp, err); p.Status != http.StatusGone || p.Code != "gone" {
		t.Errorf("a cursor of the deleted thread: %+v", p)
	}

	question, then := exchange(t)
	fork.Messages = []message{in.Messages[0], question}
	shared.threads.use(fork.ThreadID)
	shared.run(t, fork)
	wantModelTold(t, question, in.Messages[0], answer, question)
	wantMessages(t, []message{in.Messages[0], answer, question, then}, shared.conversation(t, fork.ThreadID))
	for ends := 0; ends < 2; {
		e, err := reader.next()
		if err != nil {
			t.Fatal(err)
		}
		if e.terminal() {
			ends++
		}
	}
	wantMessages(t, []message{in.Messages[0], answer}, show(t, nil, reader.events[:4]))

	anew := newInput(say("Who are you?"))
	anew.ThreadID, anew.RunID = in.ThreadID, in.RunID
	sharedModel.answerWith(t, anew.Messages[0].Content, "Nobody.")
	shared.run(t, anew)
	wantMessages(t, []message{anew.Messages[0], says("Nobody.")}, shared.conversation(t, in.ThreadID))
}

// Deleting a thread stops what it does, whatever that is, and nothing of it comes back.
func TestDeleteStopsWhatRuns(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, in input) []*follower{
		"a run that speaks": func(t *testing.T, in input) []*follower {
			sharedModel.attempts(t, in.Messages[0].Content, pours(long(4000)))
			f := shared.follow(t, in)
			f.contents(t, 3)
			return []*follower{f}
		},
		"runs that wait in line": func(t *testing.T, in input) []*follower {
			sharedModel.attempts(t, in.Messages[0].Content, pours(long(4000)))
			f := shared.follow(t, in)
			f.contents(t, 3)
			next := in.after("run-2", "enqueue", user(say("And then?")))
			sharedModel.attempts(t, next.Messages[1].Content, pours(long(4000)))
			return []*follower{f, shared.follow(t, next)}
		},
		"questions": func(t *testing.T, in input) []*follower {
			worksOut(t, in.Messages[0].Content, "Done.", "1+7")
			interruptsOf(t, shared.runAgent(t, careful, in))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInput(say("Do something."))
			readers := begin(t, in)
			if got := shared.delete(t, in.ThreadID); got != http.StatusNoContent {
				t.Fatalf("delete: %d", got)
			}
			for _, f := range readers {
				f.finish(t)
				if got := outcome(f.events[len(f.events)-1]); got != "cancelled" {
					t.Errorf("the run ends as %q", got)
				}
			}
			resp, err := shared.get(t.Context(), "/v1/threads/"+in.ThreadID, "")
			if p := refused(t, resp, err); p.Code != "unknown_thread" {
				t.Errorf("the thread is %+v", p)
			}
			var left inboxPage
			shared.ask(t, "/v1/approvals?thread="+in.ThreadID, &left)
			if len(left.Items) > 0 {
				t.Errorf("these approvals are left: %+v", left.Items)
			}
		})
	}
}
