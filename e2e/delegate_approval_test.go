package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

const chief = "/v1/agents/chief/runs"

// office is a run in which three agents work out something that people have to approve: one at the
// chief's word, one at that of a manager, and one that need not ask.
type office struct {
	in     input
	said   string   // at the end
	tasks  []string // of those who work something out
	prompt string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{in: newInput(say("See to it.")), said: say("It is done.")}
	o.prompt = o.in.Messages[0].Content
	var calls []modelCall
	hand := func(agent, task string) modelCall {
		arguments, err := json.Marshal(map[string]string{"task": task})
		if err != nil {
			t.Fatal(err)
		}
		return modelCall{Name: agent, Arguments: string(arguments)}
	}
	for i, expression := range []string{"7+1", "7+2", "1+1"} {
		task := say("Work it out.")
		o.tasks = append(o.tasks, task)
		worksOut(t, task, say(fmt.Sprintf("I have %d.", i)), expression)
	}
	managed, yes, no := say("See that it is worked out."), true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: managed, HasToolResult: &no}, Response: response{ToolCalls: []modelCall{hand("careful", o.tasks[1])}}},
		fixture{Match: match{UserMessage: managed, HasToolResult: &yes}, Response: response{Content: say("I saw to it.")}})
	calls = append(calls, hand("careful", o.tasks[0]), hand("manager", managed), hand("careful", o.tasks[2]))
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: o.prompt, HasToolResult: &no}, Response: response{ToolCalls: calls}},
		fixture{Match: match{UserMessage: o.prompt, HasToolResult: &yes}, Response: response{Content: o.said}})
	return o
}

// check holds that each calculation was made once, with what was approved, and that nobody was
// asked twice for what they had said.
func (o *office) check(t *testing.T, want [3]string) {
	t.Helper()
	for i, task := range o.tasks {
		asked := slices.DeleteFunc(sharedModel.calls(t, task), func(c call) bool {
			return !slices.ContainsFunc(c.Body.Messages, func(m chatMessage) bool { return m.Role == "user" && m.text() == task })
		})
		if len(asked) != 2 {
			t.Errorf("the model of task %d was called %d times, want 2", i, len(asked))
		}
		if got := resultsOf(t, task); !slices.Equal(got, []string{want[i]}) {
			t.Errorf("task %d heard %q, want %q", i, got, want[i])
		}
	}
}

// What subagents ask, however deep, are questions of the run. Stock clients answer them like all
// others, and the subagents go on where they were, under the ids that they had.
func TestSubagentsAsk(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		o := newOffice(t)
		d := g.drive(t, shared, script{
			URL: shared.url(chief), ThreadID: o.in.ThreadID, Messages: o.in.Messages,
			Runs: []scriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "20+1"}}}},
		})
		ends := d.finish(t)
		o.check(t, [3]string{"21", "21", "2"})
		if last := ends[1].Messages[len(ends[1].Messages)-1]; last.Content != o.said {
			t.Errorf("at the end the client has %+v", last)
		}
		suspended := map[string]bool{}
		for _, e := range d.events(0, "SUBAGENT_FINISHED") {
			var finished struct {
				SubagentRunID string `json:"subagentRunId"`
				Outcome       struct {
					Type         string   `json:"type"`
					InterruptIDs []string `json:"interruptIds"`
				} `json:"outcome"`
			}
			if err := json.Unmarshal(e, &finished); err != nil {
				t.Fatal(err)
			}
			if finished.Outcome.Type == "suspended" && len(finished.Outcome.InterruptIDs) == 1 {
				suspended[finished.SubagentRunID] = true
			}
		}
		if len(suspended) != 3 { // the manager waits as well
			t.Errorf("suspended are %v", suspended)
		}
		for _, e := range d.events(1, "SUBAGENT_STARTED") {
			var started struct {
				SubagentRunID string `json:"subagentRunId"`
			}
			if err := json.Unmarshal(e, &started); err != nil || !suspended[started.SubagentRunID] {
				t.Errorf("in the second run %s has begun (%v)", e, err)
			}
		}
	})
}

// The questions are answered one by one, with the process killed in between, in either order.
func TestSubagentsAskThroughKills(t *testing.T) {
	p := startPerdure(t)
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		o := newOffice(t)
		questions := interruptsOf(t, p.runAgent(t, chief, o.in))
		if len(questions) != 2 {
			t.Fatalf("the questions are %+v", questions)
		}
		for _, i := range order {
			p.kill()
			p.start(t)
			if status, answer := decide(t, p.endpoint, o.in.ThreadID, questions[i].ID, `{"decision":"approve"}`); status != 200 {
				t.Fatalf("question %d: %d %v", i, status, answer)
			}
		}
		p.followThread(t, o.in).untilSuccess(t)
		got := map[string]bool{}
		for _, task := range o.tasks {
			for _, r := range resultsOf(t, task) {
				got[r] = true
			}
		}
		if !got["8"] || !got["9"] || !got["2"] {
			t.Errorf("the results are %v", got)
		}
	}
}
