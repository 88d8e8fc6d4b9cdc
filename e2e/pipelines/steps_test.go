package pipelines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

const author = "/v1/agents/author/runs"

// authorRun is a run of the agent author.
type authorRun struct {
	in                    kit.Input
	text, thanks          string
	planned, tales, wrote []string // prompts
}

// newAuthorRun prepares a run of the pipeline.
func newAuthorRun(t *testing.T) *authorRun {
	t.Helper()
	b := &authorRun{in: kit.NewInput(kit.Marked("this.")), text: kit.Marked("It is so."), thanks: kit.Marked("Thank you.")}
	topic := b.in.Messages[0].Content
	prompt := func(of *[]string, text, answer string) {
		*of = append(*of, text)
		kit.SharedModel.AnswerWith(t, text, answer)
	}
	prompt(&b.planned, "Plan "+topic, `{"sums":["1+1","2+2","3+3"]}`)
	var tales []string
	for _, sum := range []string{"2", "4", "6"} {
		tale := kit.Marked("It is " + sum)
		tales = append(tales, tale)
		prompt(&b.tales, fmt.Sprintf("Tell of %s in %s", sum, topic), tale)
	}
	list, err := json.Marshal(tales)
	if err != nil {
		t.Fatal(err)
	}
	prompt(&b.wrote, fmt.Sprintf("Write about %s in %s", list, topic), b.text)
	kit.SharedModel.AnswerWith(t, topic, b.thanks)
	return b
}

// TestPipelineRun: stock clients of both generations see a pipeline of agents, tools, branches and
// an approval as one thread: its steps, its interrupt and its state.
func TestPipelineRun(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		b := newAuthorRun(t)
		d := g.Drive(t, kit.Shared, kit.Script{URL: kit.Shared.URL(author), ThreadID: b.in.ThreadID, Messages: b.in.Messages, Runs: []kit.ScriptedRun{
			{RunID: "run-1"}, {RunID: "run-2", Resume: map[string]any{"approved": true}},
		}})
		ends := d.Finish(t)
		t.Log(d.Types(0))
		t.Log(d.Types(1))
		if last := ends[1].Messages[len(ends[1].Messages)-1]; last.Content != b.thanks {
			t.Errorf("last message of the client = %q, want %q", last.Content, b.thanks)
		}
	})
}

// TestNestedPipeline: a pipeline may be a step of another pipeline. Interrupts of its branches
// reach the client, and its last message is the step's output.
func TestNestedPipeline(t *testing.T) {
	t.Parallel()
	in, text := kit.NewInput(kit.Marked("this.")), kit.Marked("It is so.")
	kit.SharedModel.AnswerWith(t, "Sum up 2 4 6 in 2 and "+in.Messages[0].Content, text)
	questions := kit.InterruptsOf(t, kit.Shared.RunAgent(t, "/v1/agents/nest/runs", in))
	if len(questions) != 3 {
		t.Fatalf("interrupts = %+v, want 3", questions)
	}
	for _, q := range questions {
		if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, q.ID, `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("approve: got %d %v, want %d", status, answer, http.StatusOK)
		}
	}
	f := kit.Shared.FollowThread(t, in)
	f.UntilSuccess(t)
	var now struct {
		State struct {
			Heard string
		}
	}
	kit.Shared.GetJSON(t, "/v1/threads/"+in.ThreadID+"/state", &now)
	if now.State.Heard != text {
		t.Errorf("the state has %q, want %q", now.State.Heard, text)
	}
}
