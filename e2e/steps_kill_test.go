package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

const trio = "/v1/agents/trio/runs"

// check holds that the author's model was asked each thing, and each thing once but for kills, and
// that the client has its thanks.
func (b *book) check(t *testing.T, f *follower, kills int) {
	t.Helper()
	messages := show(t, b.in.Messages, f.events, withdrawn)
	if last := messages[len(messages)-1]; last.Content != b.thanks {
		t.Errorf("at the end the client has %+v", last)
	}
	again := 0
	for _, prompt := range slices.Concat(b.planned, b.told, b.wrote) {
		n := len(sharedModel.calls(t, prompt))
		if n == 0 {
			t.Errorf("the model was never asked %q", prompt)
		}
		again += max(0, n-1)
	}
	if again > 3*kills { // as many as are under way at once
		t.Errorf("%d model calls were made again after %d kills", again, kills)
	}
}

// The process is killed behind every few events of pipelines that are under way: what was done is
// not done again, and their readers miss nothing.
func TestKillSteps(t *testing.T) {
	p := startPerdure(t)
	const runs = 8
	var books []*book
	var readers []*follower
	for range runs {
		b := newBook(t)
		books, readers = append(books, b), append(readers, p.followAgent(t, author, b.in))
	}
	const kills = 4
	ended := make([]bool, runs)
	step := func(i, n int) {
		for range n {
			if ended[i] {
				return
			}
			e, err := readers[i].next()
			if err != nil {
				t.Fatal(err)
			}
			ended[i] = e.terminal()
		}
	}
	for range kills {
		for i := range readers {
			step(i, 5+3*i)
		}
		p.kill()
		p.start(t)
	}
	for i, f := range readers {
		for !ended[i] {
			step(i, 1)
		}
		f.cut()
		for n, e := range f.events[1:] {
			if e.ID <= f.events[n].ID {
				t.Errorf("run %d: event %s comes behind %s", i, e.ID, f.events[n].ID)
			}
		}
		question := interruptsOf(t, f.events)[0]
		if i%2 == 0 {
			p.kill() // between question and answer
			p.start(t)
		}
		if status, answer := decide(t, p.endpoint, books[i].in.ThreadID, question.ID, `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
		whole := p.followThread(t, books[i].in)
		whole.untilSuccess(t)
		books[i].check(t, whole, kills+1)
	}
}

// Three questions of branches that stand beside one another are answered in any order: each branch
// does what was approved of it.
func TestBranchesAsk(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			in, said := newInput(say("this.")), say("It is so.")
			topic := in.Messages[0].Content
			prompt := "Sum up 2 12 6 in " + topic
			sharedModel.answerWith(t, prompt, said)
			questions := interruptsOf(t, shared.runAgent(t, trio, in))
			if len(questions) != 3 {
				t.Fatalf("the questions are %+v", questions)
			}
			args := map[string]string{}
			for _, a := range shared.pending(t, "?thread="+in.ThreadID, in.ThreadID, in.ThreadID, in.ThreadID).Items {
				args[a.ID] = fmt.Sprint(a.Args["n"])
			}
			slices.SortFunc(questions, func(a, b interrupt) int {
				return int(args[a.ID][0]) - int(args[b.ID][0])
			})
			for _, i := range order {
				body := `{"decision":"approve"}`
				if i == 1 {
					body = `{"decision":"edit","args":{"n":10}}`
				}
				if status, answer := decide(t, shared.endpoint, in.ThreadID, questions[i].ID, body); status != http.StatusOK {
					t.Fatalf("question %d: %d %v", i, status, answer)
				}
			}
			f := shared.followThread(t, in)
			f.untilSuccess(t)
			if n := len(sharedModel.calls(t, prompt)); n != 1 {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// A cancel ends ten branches that speak, in under a second, by legal events.
func TestCancelReachesBranches(t *testing.T) {
	// Not in parallel: it measures.
	for _, g := range generations {
		t.Run(g.name, func(t *testing.T) {
			in, answer := newInput(say("Slowly, please.")), long(4000)
			sharedModel.answer(t, fixture{Match: match{UserMessage: in.Messages[0].Content}, Response: pours(answer).Response, ChunkSize: 8, Latency: 25})
			d := g.drive(t, shared, script{URL: shared.url("/v1/agents/choir/runs"), ThreadID: in.ThreadID, Runs: []scriptedRun{{RunID: in.RunID, Messages: in.Messages}}})
			d.until(t, "SUBAGENT_STARTED", 10)
			d.until(t, "TEXT_MESSAGE_CONTENT", 50)
			asked := time.Now()
			if got := shared.cancel(t, in); got != http.StatusAccepted {
				t.Fatalf("cancel: %d, want 202", got)
			}
			d.finish(t)
			if took := time.Since(asked); took > time.Second {
				t.Errorf("the run ended %s after the cancel", took)
			}
			wantCancelled(t, g, d)
			if n := len(d.events(0, "SUBAGENT_ERROR")); n != 10 {
				t.Errorf("%d branches were told to stop: %s", n, d.types(0))
			}
		})
	}
}
