package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// superseded returns the messages that inputs removed from the conversation of a thread.
func (p *perdure) superseded(t *testing.T, thread string) []message {
	t.Helper()
	var tails struct{ Items []struct{ RunID string } }
	p.ask(t, "/v1/threads/"+url.PathEscape(thread)+"/superseded?limit=500", &tails)
	var all []message
	for _, tail := range tails.Items {
		var page struct{ Items []message }
		p.ask(t, "/v1/threads/"+url.PathEscape(thread)+"/superseded/"+url.PathEscape(tail.RunID)+"?limit=500", &page)
		all = append(all, page.Items...)
	}
	return all
}

// Stock clients of both generations send right, lost, stale, trimmed, shortened and edited lists to
// one thread. Each ends with the conversation as the server has it, and no message disappears.
func TestRandomLists(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		for seed := range uint64(2) {
			random := rand.New(rand.NewPCG(seed, 16))
			thread := newThread()
			var lists [][]message // as clients had them
			ever := map[string]message{}
			for n := range 7 {
				list := randomList(random, lists)
				if len(list) == 0 || list[len(list)-1].Role != "user" || random.IntN(3) > 0 {
					list = append(list, user(say(fmt.Sprintf("Message %d.", n))))
				}
				last := list[len(list)-1].Content
				sharedModel.answerWith(t, last, say(fmt.Sprintf("Answer %d.", n)))
				d := g.drive(t, shared, script{ThreadID: thread, Messages: list, Runs: []scriptedRun{{RunID: fmt.Sprint("run-", n)}}})
				shown := d.finish(t)[0].Messages
				there := shared.conversation(t, thread)
				if diff := cmp.Diff(there, shown); diff != "" {
					t.Fatalf("seed %d, run %d: the client has another list than the server (-server +client):\n%s", seed, n, diff)
				}
				lists = append(lists, shown)
				for _, m := range there {
					ever[m.ID+m.Content] = m
				}
				kept := map[string]bool{}
				for _, m := range slices.Concat(there, shared.superseded(t, thread)) {
					kept[m.ID+m.Content] = true
				}
				for key, m := range ever {
					if !kept[key] {
						t.Fatalf("seed %d, run %d: %+v has disappeared; the list was %+v", seed, n, m, list)
					}
				}
			}
		}
	})
}

// randomList returns what a client may have of a thread whose lists there were.
func randomList(random *rand.Rand, lists [][]message) []message {
	if len(lists) == 0 {
		return nil
	}
	list := slices.Clone(lists[len(lists)-1])
	switch random.IntN(7) {
	case 0:
		return nil
	case 1:
		return slices.Clone(lists[random.IntN(len(lists))])
	case 2:
		return list[random.IntN(len(list)):]
	case 3:
		return list[:1+random.IntN(len(list))]
	case 4:
		i := 0
		for list[i].Role != "user" || i < len(list)-2 && random.IntN(2) == 0 {
			i = (i + 1) % len(list)
		}
		list[i].Content = say("Edited.")
		return list[:i+1]
	}
	return list
}

// A page whose messages were lost sends only the new one, as curl does. The model is told the whole
// conversation.
func TestAClientLostItsList(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		thread := newThread()
		var heard, want []string
		for n := range 3 {
			question, answer := user(say("Question.")), say("Answer.")
			sharedModel.answerWith(t, question.Content, answer)
			d := g.drive(t, shared, script{ThreadID: thread, Runs: []scriptedRun{{RunID: fmt.Sprint("run-", n), Messages: []message{question}}}})
			d.finish(t)
			heard = append(heard, question.Content)
			wantHeard(t, sharedModel.calls(t, question.Content)[0], heard...)
			heard = append(heard, answer)
		}
		for _, m := range shared.conversation(t, thread) {
			want = append(want, m.Content)
		}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("the conversation (-server +said):\n%s", diff)
		}
	})
}

// CopilotKit regenerates an answer by cutting the page's list after the question and running again.
// The superseded messages can be read and forked.
func TestCopilotKitRegenerates(t *testing.T) {
	t.Parallel()
	kit, thread := launchCopilotKit(t, "default", shared.url(assistant)), newThread()
	first, second := user(say("First?")), user(say("Second?"))
	one, two, better := say("One."), say("Two."), say("Two, but better.")
	sharedModel.answerWith(t, first.Content, one)
	sharedModel.attempts(t, second.Content, answers(two), answers(better))
	_, ends := kit.talk(t, thread, scriptedRun{RunID: "run-1", Messages: []message{first}}, scriptedRun{RunID: "run-2", Add: []message{second}})
	list := ends[1].Messages
	_, ends = kit.talk(t, thread, scriptedRun{RunID: "run-3", Messages: list[:len(list)-1]})
	wantMessages(t, []message{first, says(one), second, says(better)}, ends[0].Messages)
	wantMessages(t, []message{says(two)}, shared.superseded(t, thread))

	resp, err := shared.post(t.Context(), "/v1/threads/"+thread+"/runs/run-2/fork", map[string]any{"threadId": thread + "-before"})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	wantMessages(t, []message{first, says(one), second, says(two)}, shared.conversation(t, thread+"-before"))
}
