package agents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

const lead = "/v1/agents/lead/runs"

// delegatedRun is a run that delegates tasks to a subagent, which calculates before it answers.
type delegatedRun struct {
	in           kit.Input
	tasks, finds []string
	answer       string
}

// newDelegatedRun prepares a run that delegates a number of tasks.
func newDelegatedRun(t *testing.T, tasks int) *delegatedRun {
	t.Helper()
	w := &delegatedRun{in: kit.NewInput(kit.Marked("Find out.")), answer: kit.Marked("That is all.")}
	yes, no := true, false
	var calls []kit.ModelCall
	for range tasks {
		task, finds := kit.Marked("What is it?"), kit.LongText(300)
		w.tasks, w.finds = append(w.tasks, task), append(w.finds, finds)
		arguments, err := json.Marshal(map[string]string{"task": task})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, kit.ModelCall{Name: "researcher", Arguments: string(arguments)})
		kit.SharedModel.Answer(t,
			kit.Fixture{Match: kit.Match{UserMessage: task, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}}}},
			kit.Fixture{Match: kit.Match{UserMessage: task, HasToolResult: &yes}, Response: kit.Response{Content: finds}, ChunkSize: 8, Latency: 10})
	}
	prompt := w.in.Messages[0].Content
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: calls}},
		kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: w.answer}})
	return w
}

// check checks the model calls and the client's messages.
func (w *delegatedRun) check(t *testing.T, got []kit.Message) {
	t.Helper()
	asked := kit.SharedModel.Calls(t, w.in.Messages[0].Content)
	last := asked[len(asked)-1].Body.Messages
	for i, task := range w.tasks {
		if heard := func(m kit.ChatMessage) bool { return m.Role == "tool" && m.Text() == w.finds[i] }; !slices.ContainsFunc(last, heard) {
			t.Errorf("results sent to the model: want that of task %d, got none", i)
		}
		for _, c := range kit.SharedModel.Calls(t, task) {
			if first := c.Body.Messages[0]; first.Text() == "You research." && strings.Contains(c.Body.Messages[1].Text(), task) {
				continue
			}
			if !strings.Contains(c.Body.Messages[0].Text(), "You lead.") {
				t.Errorf("messages sent to the researcher = %+v, want no instructions of the lead", c.Body.Messages)
			}
		}
		if !slices.ContainsFunc(got, func(m kit.Message) bool { return m.Role == "assistant" && m.Content == w.finds[i] }) {
			t.Errorf("messages of the client: want the researcher's result about %d, got none", i)
		}
	}
	if end := got[len(got)-1]; end.Content != w.answer {
		t.Errorf("last message of the client = %q, want %q", end.Content, w.answer)
	}
}

// TestSubagentsWorkInParallel: two tasks are delegated at once. Stock clients of both generations
// show both subagents as they stream, and tell them apart. The next run has their results.
func TestSubagentsWorkInParallel(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		w := newDelegatedRun(t, 2)
		next, answer := kit.UserMessage(kit.Marked("And now?")), kit.Marked("Now this.")
		kit.SharedModel.AnswerWith(t, next.Content, answer)
		d := g.Drive(t, kit.Shared, kit.Script{URL: kit.Shared.URL(lead), ThreadID: w.in.ThreadID, Messages: w.in.Messages, Runs: []kit.ScriptedRun{{RunID: w.in.RunID}, {RunID: "run-2", Add: []kit.Message{next}}}})
		ends := d.Finish(t)
		w.check(t, ends[0].Messages)
		if n := len(d.Events(0, "SUBAGENT_FINISHED")); n != 2 {
			t.Errorf("number of finished subagents = %d, want 2: %s", n, d.Types(0))
		}
		if end := ends[1].Messages[len(ends[1].Messages)-1]; end.Content != answer {
			t.Errorf("last message of the next run = %q, want %q", end.Content, answer)
		}
		for _, m := range kit.SharedModel.Calls(t, next.Content)[0].Body.Messages {
			if m.Role == "assistant" && slices.Contains(w.finds, m.Text()) {
				t.Error("messages sent to the model have the text of another agent, want only results")
			}
		}
	})
}

// TestCancelReachesSubagents: a cancel of the run stops its subagents.
func TestCancelReachesSubagents(t *testing.T) {
	t.Parallel()
	for _, g := range kit.Generations {
		t.Run(g.Name, func(t *testing.T) {
			in, task, answer := kit.NewInput(kit.Marked("Find out.")), kit.Marked("Slowly, please."), kit.LongText(4000)
			arguments := fmt.Sprintf(`{"task":%q}`, task)
			kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content}, Response: kit.Response{ToolCalls: []kit.ModelCall{
				{Name: "researcher", Arguments: arguments}, {Name: "researcher", Arguments: arguments},
			}}})
			kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: task}, Response: kit.SlowAnswer(answer).Response, ChunkSize: 8, Latency: 25})
			d := g.Drive(t, kit.Shared, kit.Script{URL: kit.Shared.URL(lead), ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{{RunID: in.RunID, Messages: in.Messages}}})
			d.Until(t, "TEXT_MESSAGE_CONTENT", 10)
			cancelled := time.Now()
			if got := kit.Shared.Cancel(t, in); got != http.StatusAccepted {
				t.Fatalf("cancel: %d, want 202", got)
			}
			end := d.Finish(t)[0]
			if took := time.Since(cancelled); took > kit.CancelTime {
				t.Errorf("time from the cancel to the end of the run = %s, want at most %s", took, kit.CancelTime)
			}
			kit.WantCancelled(t, g, d)
			if n := len(d.Events(0, "SUBAGENT_ERROR")); n != 2 {
				t.Errorf("number of subagents with a cancelled model call = %d, want 2: %s", n, d.Types(0))
			}
			kept := 0
			for _, m := range end.Messages {
				if m.Role == "assistant" && m.Content != "" && strings.HasPrefix(answer, m.Content) {
					kept++
				}
			}
			if kept != 2 {
				t.Errorf("number of kept beginnings = %d, want 2: %+v", kept, end.Messages)
			}
		})
	}
}

// TestKillSubagents: the process is killed twice while subagents work. They continue, and no
// finished step runs again.
func TestKillSubagents(t *testing.T) {
	p := kit.Setup(t)
	var works []*delegatedRun
	var readers []*kit.Follower
	for range 6 {
		w := newDelegatedRun(t, 2)
		works, readers = append(works, w), append(readers, p.FollowAgent(t, lead, w.in))
	}
	for kill := range 2 {
		for i, r := range readers {
			r.UntilContent(t, 5*(i+1)+10*kill)
		}
		p.Kill()
		p.Start(t)
	}
	for i, r := range readers {
		r.Finish(t)
		w := works[i]
		w.check(t, kit.ShownMessages(t, w.in.Messages, r.Events))
		for n, task := range w.tasks {
			calculated := 0
			for _, c := range kit.SharedModel.Calls(t, task) {
				if heard := c.Body.Messages; heard[len(heard)-1].Role == "user" && heard[0].Text() == "You research." {
					calculated++
				}
			}
			if calculated == 0 || calculated > 3 {
				t.Errorf("run %d, task %d: number of first calls of the model = %d, want 1 to 3", i, n, calculated)
			}
		}
	}
}
