package pipelines

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

const trio = "/v1/agents/trio/runs"

// check checks that the model had each prompt once, except for kills, and that the client has the
// final message.
func (b *authorRun) check(t *testing.T, f *kit.Follower, kills int) {
	t.Helper()
	messages := kit.ShownMessages(t, b.in.Messages, f.Events, kit.RetractWarning)
	if last := messages[len(messages)-1]; last.Content != b.thanks {
		t.Errorf("last message of the client = %q, want %q", last.Content, b.thanks)
	}
	again := 0
	for _, prompt := range slices.Concat(b.planned, b.tales, b.wrote) {
		n := len(kit.SharedModel.Calls(t, prompt))
		if n == 0 {
			t.Errorf("calls of the model with the prompt %q: got none, want some", prompt)
		}
		again += max(0, n-1)
	}
	if again > 3*kills { // the concurrent calls of each kill
		t.Errorf("number of repeated model calls = %d, want at most three for each of %d kills", again, kills)
	}
}

// TestStepsSurviveKills: the process is killed after every few events of concurrent pipelines. No
// finished step runs again, and readers miss nothing.
func TestStepsSurviveKills(t *testing.T) {
	p := kit.Setup(t)
	const runs = 8
	var books []*authorRun
	var readers []*kit.Follower
	for range runs {
		b := newAuthorRun(t)
		books, readers = append(books, b), append(readers, p.FollowAgent(t, author, b.in))
	}
	const kills = 4
	ended := make([]bool, runs)
	step := func(i, n int) {
		for range n {
			if ended[i] {
				return
			}
			e, err := readers[i].Next()
			if err != nil {
				t.Fatal(err)
			}
			ended[i] = e.Terminal()
		}
	}
	for range kills {
		for i := range readers {
			step(i, 5+3*i)
		}
		p.Kill()
		p.Start(t)
	}
	for i, f := range readers {
		for !ended[i] {
			step(i, 1)
		}
		f.Cut()
		for n, e := range f.Events[1:] {
			if e.ID <= f.Events[n].ID {
				t.Errorf("run %d: event %s follows %s, want a later one", i, e.ID, f.Events[n].ID)
			}
		}
		question := kit.InterruptsOf(t, f.Events)[0]
		if i%2 == 0 {
			p.Kill() // between interrupt and decision
			p.Start(t)
		}
		if status, answer := kit.Decide(t, p.Endpoint, books[i].in.ThreadID, question.ID, `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
		}
		whole := p.FollowThread(t, books[i].in)
		whole.UntilSuccess(t)
		books[i].check(t, whole, kills+1)
	}
}

// TestInterruptsOfBranches: three branches ask for approval, and are approved in any order. Each
// branch does what was approved of it.
func TestInterruptsOfBranches(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			in, text := kit.NewInput(kit.Marked("this.")), kit.Marked("It is so.")
			topic := in.Messages[0].Content
			prompt := "Sum up 2 12 6 in " + topic
			kit.SharedModel.AnswerWith(t, prompt, text)
			questions := kit.InterruptsOf(t, kit.Shared.RunAgent(t, trio, in))
			if len(questions) != 3 {
				t.Fatalf("interrupts = %+v, want 3", questions)
			}
			args := map[string]string{}
			for _, a := range kit.Shared.AwaitPending(t, "?thread="+in.ThreadID, in.ThreadID, in.ThreadID, in.ThreadID).Items {
				args[a.ID] = fmt.Sprint(a.Args["n"])
			}
			slices.SortFunc(questions, func(a, b kit.Interrupt) int {
				return int(args[a.ID][0]) - int(args[b.ID][0])
			})
			for _, i := range order {
				body := `{"decision":"approve"}`
				if i == 1 {
					body = `{"decision":"edit","args":{"n":10}}`
				}
				if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, questions[i].ID, body); status != http.StatusOK {
					t.Fatalf("question %d: got %d %v, want %d", i, status, answer, http.StatusOK)
				}
			}
			f := kit.Shared.FollowThread(t, in)
			f.UntilSuccess(t)
			if n := len(kit.SharedModel.Calls(t, prompt)); n != 1 {
				t.Errorf("number of model calls = %d, want 1", n)
			}
		})
	}
}

// TestCancelReachesBranches: a cancel ends ten branches while their models stream, with legal
// events.
func TestCancelReachesBranches(t *testing.T) {
	t.Parallel()
	for _, g := range kit.Generations {
		t.Run(g.Name, func(t *testing.T) {
			in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(4000)
			kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content}, Response: kit.SlowAnswer(answer).Response, ChunkSize: 8, Latency: 25})
			d := g.Drive(t, kit.Shared, kit.Script{URL: kit.Shared.URL("/v1/agents/choir/runs"), ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{{RunID: in.RunID, Messages: in.Messages}}})
			d.Until(t, "SUBAGENT_STARTED", 10)
			d.Until(t, "TEXT_MESSAGE_CONTENT", 50)
			cancelled := time.Now()
			if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
				t.Fatalf("cancel: %d, want 202", got)
			}
			d.Finish(t)
			if took := time.Since(cancelled); took > kit.CancelTime {
				t.Errorf("time from the cancel to the end of the run = %s, want at most %s", took, kit.CancelTime)
			}
			kit.WantCancelled(t, g, d)
			if n := len(d.Events(0, "SUBAGENT_ERROR")); n != 10 {
				t.Errorf("number of branches with a cancelled model call = %d, want 10: %s", n, d.Types(0))
			}
		})
	}
}
