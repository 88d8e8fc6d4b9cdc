package runs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRandomLists: stock clients of both generations send correct, missing, stale, trimmed,
// shortened and edited message lists to one thread. Each ends with the server's conversation, and
// no message is lost.
func TestRandomLists(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		for seed := range uint64(2) {
			random := rand.New(rand.NewPCG(seed, 16))
			thread := kit.NewThread()
			var lists [][]kit.Message // lists that clients had
			ever := map[string]kit.Message{}
			for n := range 7 {
				list := randomList(random, lists)
				if len(list) == 0 || list[len(list)-1].Role != "user" || random.IntN(3) > 0 {
					list = append(list, kit.UserMessage(kit.Marked(fmt.Sprintf("Message %d.", n))))
				}
				last := list[len(list)-1].Content
				kit.SharedModel.AnswerWith(t, last, kit.Marked(fmt.Sprintf("Answer %d.", n)))
				d := g.Drive(t, kit.Shared, kit.Script{ThreadID: thread, Messages: list, Runs: []kit.ScriptedRun{{RunID: fmt.Sprint("run-", n)}}})
				shown := d.Finish(t)[0].Messages
				there := kit.Shared.MessagesOf(t, thread)
				if diff := cmp.Diff(there, shown); diff != "" {
					t.Fatalf("seed %d, run %d: list of the client (-server +client):\n%s", seed, n, diff)
				}
				lists = append(lists, shown)
				for _, m := range there {
					ever[m.ID+m.Content] = m
				}
				kept := map[string]bool{}
				for _, m := range slices.Concat(there, kit.Shared.Superseded(t, thread)) {
					kept[m.ID+m.Content] = true
				}
				for key, m := range ever {
					if !kept[key] {
						t.Fatalf("seed %d, run %d: %+v has disappeared, want it in the list %+v", seed, n, m, list)
					}
				}
			}
		}
	})
}

// randomList returns a list that a client may have of a thread with the given lists.
func randomList(random *rand.Rand, lists [][]kit.Message) []kit.Message {
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
		list[i].Content = kit.Marked("Edited.")
		return list[:i+1]
	}
	return list
}

// TestClientWithLostList: a page that has lost its messages sends only the new one. The model gets
// the whole conversation.
func TestClientWithLostList(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		thread := kit.NewThread()
		var heard, want []string
		for n := range 3 {
			question, answer := kit.UserMessage(kit.Marked("Question.")), kit.Marked("Answer.")
			kit.SharedModel.AnswerWith(t, question.Content, answer)
			d := g.Drive(t, kit.Shared, kit.Script{ThreadID: thread, Runs: []kit.ScriptedRun{{RunID: fmt.Sprint("run-", n), Messages: []kit.Message{question}}}})
			d.Finish(t)
			heard = append(heard, question.Content)
			wantModelInput(t, kit.SharedModel.Calls(t, question.Content)[0], heard...)
			heard = append(heard, answer)
		}
		for _, m := range kit.Shared.MessagesOf(t, thread) {
			want = append(want, m.Content)
		}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("conversation (-server +client):\n%s", diff)
		}
	})
}

// TestCopilotKitRegenerates: CopilotKit regenerates an answer by cutting the page's list after the
// question and running again. The superseded messages can be read and forked.
func TestCopilotKitRegenerates(t *testing.T) {
	t.Parallel()
	page, thread := kit.StartCopilotKit(t, "default", kit.Shared.URL(kit.AssistantPath)), kit.NewThread()
	first, second := kit.UserMessage(kit.Marked("First?")), kit.UserMessage(kit.Marked("Second?"))
	one, two, better := kit.Marked("One."), kit.Marked("Two."), kit.Marked("Two, but better.")
	kit.SharedModel.AnswerWith(t, first.Content, one)
	kit.SharedModel.AnswerInOrder(t, second.Content, kit.FastAnswer(two), kit.FastAnswer(better))
	_, ends := page.Run(t, thread, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{first}}, kit.ScriptedRun{RunID: "run-2", Add: []kit.Message{second}})
	list := ends[1].Messages
	_, ends = page.Run(t, thread, kit.ScriptedRun{RunID: "run-3", Messages: list[:len(list)-1]})
	kit.WantMessages(t, []kit.Message{first, kit.AssistantMessage(one), second, kit.AssistantMessage(better)}, ends[0].Messages)
	kit.WantMessages(t, []kit.Message{kit.AssistantMessage(two)}, kit.Shared.Superseded(t, thread))

	resp, err := kit.Shared.Post(t.Context(), "/v1/threads/"+thread+"/runs/run-2/fork", map[string]any{"threadId": thread + "-before"})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	kit.WantMessages(t, []kit.Message{first, kit.AssistantMessage(one), second, kit.AssistantMessage(two)}, kit.Shared.MessagesOf(t, thread+"-before"))
}
