package approvals

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

const chief = "/v1/agents/chief/runs"

// chiefRun is a run with three calculations by subagents: one of the chief, one of a manager below
// the chief, and one that needs no approval.
type chiefRun struct {
	in     kit.Input
	said   string   // final answer
	tasks  []string // prompts of the calculating subagents
	prompt string
}

// newChiefRun prepares a run whose subagents need approvals.
func newChiefRun(t *testing.T) *chiefRun {
	t.Helper()
	o := &chiefRun{in: kit.NewInput(kit.Marked("See to it.")), said: kit.Marked("It is done.")}
	o.prompt = o.in.Messages[0].Content
	var calls []kit.ModelCall
	hand := func(agent, task string) kit.ModelCall {
		arguments, err := json.Marshal(map[string]string{"task": task})
		if err != nil {
			t.Fatal(err)
		}
		return kit.ModelCall{Name: agent, Arguments: string(arguments)}
	}
	for i, expression := range []string{"7+1", "7+2", "1+1"} {
		task := kit.Marked("Work it out.")
		o.tasks = append(o.tasks, task)
		kit.ScriptCalculations(t, task, kit.Marked(fmt.Sprintf("I have %d.", i)), expression)
	}
	managed, yes, no := kit.Marked("See that it is worked out."), true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: managed, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{hand("careful", o.tasks[1])}}},
		kit.Fixture{Match: kit.Match{UserMessage: managed, HasToolResult: &yes}, Response: kit.Response{Content: kit.Marked("I saw to it.")}})
	calls = append(calls, hand("careful", o.tasks[0]), hand("manager", managed), hand("careful", o.tasks[2]))
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: o.prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: o.prompt, HasToolResult: &yes}, Response: kit.Response{Content: o.said}})
	return o
}

// check checks that each calculation was made once, as approved, and that no prompt was sent twice.
func (o *chiefRun) check(t *testing.T, want [3]string) {
	t.Helper()
	for i, task := range o.tasks {
		asked := slices.DeleteFunc(kit.SharedModel.Calls(t, task), func(c kit.Call) bool {
			return !slices.ContainsFunc(c.Body.Messages, func(m kit.ChatMessage) bool { return m.Role == "user" && m.Text() == task })
		})
		if len(asked) != 2 {
			t.Errorf("the model of task %d was called %d times, want 2", i, len(asked))
		}
		if got := kit.ToolResultsSent(t, task); !slices.Equal(got, []string{want[i]}) {
			t.Errorf("task %d got %q, want %q", i, got, want[i])
		}
	}
}

// TestInterruptsOfSubagents: interrupts of nested subagents are interrupts of the run. Stock
// clients answer them as usual, and the subagents continue under the same ids.
func TestInterruptsOfSubagents(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		o := newChiefRun(t)
		d := g.Drive(t, kit.Shared, kit.Script{
			URL: kit.Shared.URL(chief), ThreadID: o.in.ThreadID, Messages: o.in.Messages,
			Runs: []kit.ScriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "20+1"}}}},
		})
		ends := d.Finish(t)
		o.check(t, [3]string{"21", "21", "2"})
		if last := ends[1].Messages[len(ends[1].Messages)-1]; last.Content != o.said {
			t.Errorf("last message of the client = %q, want %q", last.Content, o.said)
		}
		suspended := map[string]bool{}
		for _, e := range d.Events(0, "SUBAGENT_FINISHED") {
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
		if len(suspended) != 3 { // including the manager
			t.Errorf("suspended subagents = %v, want 3", suspended)
		}
		for _, e := range d.Events(1, "SUBAGENT_STARTED") {
			var started struct {
				SubagentRunID string `json:"subagentRunId"`
			}
			if err := json.Unmarshal(e, &started); err != nil || !suspended[started.SubagentRunID] {
				t.Errorf("second run starts %s (%v), want a suspended subagent", e, err)
			}
		}
	})
}

// TestInterruptsOfSubagentsSurviveKills: the interrupts are answered one by one, in either order,
// with kills in between.
func TestInterruptsOfSubagentsSurviveKills(t *testing.T) {
	p := kit.Setup(t)
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		o := newChiefRun(t)
		questions := kit.InterruptsOf(t, p.RunAgent(t, chief, o.in))
		if len(questions) != 2 {
			t.Fatalf("interrupts = %+v, want 2", questions)
		}
		for _, i := range order {
			p.Kill()
			p.Start(t)
			if status, answer := kit.Decide(t, p.Endpoint, o.in.ThreadID, questions[i].ID, `{"decision":"approve"}`); status != 200 {
				t.Fatalf("decision about interrupt %d: got %d %v, want %d", i, status, answer, 200)
			}
		}
		p.FollowThread(t, o.in).UntilSuccess(t)
		got := map[string]bool{}
		for _, task := range o.tasks {
			for _, r := range kit.ToolResultsSent(t, task) {
				got[r] = true
			}
		}
		if !got["8"] || !got["9"] || !got["2"] {
			t.Errorf("results = %v, want 8, 9 and 2", got)
		}
	}
}
