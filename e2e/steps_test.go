package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

const author = "/v1/agents/author/runs"

// book is a run of the author.
type book struct {
	in                   input
	text, thanks         string
	planned, told, wrote []string // prompts
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{in: newInput(say("this.")), text: say("It is so."), thanks: say("Thank you.")}
	topic := b.in.Messages[0].Content
	prompt := func(of *[]string, text, answer string) {
		*of = append(*of, text)
		sharedModel.answerWith(t, text, answer)
	}
	prompt(&b.planned, "Plan "+topic, `{"sums":["1+1","2+2","3+3"]}`)
	var tales []string
	for _, sum := range []string{"2", "4", "6"} {
		tale := say("It is " + sum)
		tales = append(tales, tale)
		prompt(&b.told, fmt.Sprintf("Tell of %s in %s", sum, topic), tale)
	}
	list, err := json.Marshal(tales)
	if err != nil {
		t.Fatal(err)
	}
	prompt(&b.wrote, fmt.Sprintf("Write about %s in %s", list, topic), b.text)
	sharedModel.answerWith(t, topic, b.thanks)
	return b
}

// A pipeline of agents, tools, branches and a question is one thread for stock clients of both
// generations: they see its steps, answer its question, and have its state.
func TestSteps(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		b := newBook(t)
		d := g.drive(t, shared, script{URL: shared.url(author), ThreadID: b.in.ThreadID, Messages: b.in.Messages, Runs: []scriptedRun{
			{RunID: "run-1"}, {RunID: "run-2", Resume: map[string]any{"approved": true}},
		}})
		ends := d.finish(t)
		t.Log(d.types(0))
		t.Log(d.types(1))
		if last := ends[1].Messages[len(ends[1].Messages)-1]; last.Content != b.thanks {
			t.Errorf("at the end the client has %+v", last)
		}
	})
}

// An agent that consists of steps may be a step of another one: what its branches ask is asked of
// people, and what it says at last is the step's output.
func TestAStepIsAnAgentWithSteps(t *testing.T) {
	t.Parallel()
	in, said := newInput(say("this.")), say("It is so.")
	sharedModel.answerWith(t, "Sum up 2 4 6 in 2 and "+in.Messages[0].Content, said)
	questions := interruptsOf(t, shared.runAgent(t, "/v1/agents/nest/runs", in))
	if len(questions) != 3 {
		t.Fatalf("the questions are %+v", questions)
	}
	for _, q := range questions {
		if status, answer := decide(t, shared.endpoint, in.ThreadID, q.ID, `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
	}
	f := shared.followThread(t, in)
	f.untilSuccess(t)
	var now struct {
		State struct {
			Heard string
		}
	}
	shared.ask(t, "/v1/threads/"+in.ThreadID+"/state", &now)
	if now.State.Heard != said {
		t.Errorf("the state has %q, want %q", now.State.Heard, said)
	}
}
