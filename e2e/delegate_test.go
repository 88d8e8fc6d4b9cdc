package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const lead = "/v1/agents/lead/runs"

// work is a run that hands tasks to another agent, which calculates before it answers.
type work struct {
	in           input
	tasks, finds []string
	answer       string
}

func newWork(t *testing.T, tasks int) *work {
	t.Helper()
	w := &work{in: newInput(say("Find out.")), answer: say("That is all.")}
	yes, no := true, false
	var calls []modelCall
	for range tasks {
		task, finds := say("What is it?"), long(300)
		w.tasks, w.finds = append(w.tasks, task), append(w.finds, finds)
		arguments, err := json.Marshal(map[string]string{"task": task})
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, modelCall{Name: "researcher", Arguments: string(arguments)})
		sharedModel.answer(t,
			fixture{Match: match{UserMessage: task, HasToolResult: &no}, Response: response{ToolCalls: []modelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}}}},
			fixture{Match: match{UserMessage: task, HasToolResult: &yes}, Response: response{Content: finds}, ChunkSize: 8, Latency: 10})
	}
	prompt := w.in.Messages[0].Content
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: calls}},
		fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: w.answer}})
	return w
}

// check holds what the model server was asked, and what a client has in the end.
func (w *work) check(t *testing.T, got []message) {
	t.Helper()
	asked := sharedModel.calls(t, w.in.Messages[0].Content)
	last := asked[len(asked)-1].Body.Messages
	for i, task := range w.tasks {
		if heard := func(m chatMessage) bool { return m.Role == "tool" && m.text() == w.finds[i] }; !slices.ContainsFunc(last, heard) {
			t.Errorf("the model did not hear what came of the task %d", i)
		}
		for _, c := range sharedModel.calls(t, task) {
			if first := c.Body.Messages[0]; first.text() == "You research." && strings.Contains(c.Body.Messages[1].text(), task) {
				continue
			}
			if !strings.Contains(c.Body.Messages[0].text(), "You lead.") {
				t.Errorf("the researcher was told %+v", c.Body.Messages)
			}
		}
		if !slices.ContainsFunc(got, func(m message) bool { return m.Role == "assistant" && m.Content == w.finds[i] }) {
			t.Errorf("the client does not have what the researcher has found about %d", i)
		}
	}
	if end := got[len(got)-1]; end.Content != w.answer {
		t.Errorf("the client ends with %+v", end)
	}
}

// Two tasks are handed to another agent at once. Stock clients of both generations show what the
// two do as it goes on, each told from the other, and the next run continues from what they have.
func TestDelegation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		w := newWork(t, 2)
		next, answer := user(say("And now?")), say("Now this.")
		sharedModel.answerWith(t, next.Content, answer)
		d := g.drive(t, shared, script{URL: shared.url(lead), ThreadID: w.in.ThreadID, Messages: w.in.Messages, Runs: []scriptedRun{{RunID: w.in.RunID}, {RunID: "run-2", Add: []message{next}}}})
		ends := d.finish(t)
		w.check(t, ends[0].Messages)
		if n := len(d.events(0, "SUBAGENT_FINISHED")); n != 2 {
			t.Errorf("%d subagents have finished: %s", n, d.types(0))
		}
		if end := ends[1].Messages[len(ends[1].Messages)-1]; end.Content != answer {
			t.Errorf("the next run ends with %+v", end)
		}
		for _, m := range sharedModel.calls(t, next.Content)[0].Body.Messages {
			if m.Role == "assistant" && slices.Contains(w.finds, m.text()) {
				t.Error("the model hears what another agent has said")
			}
		}
	})
}

// A cancel of the run stops the agents that work for it, in under a second.
func TestCancelReachesSubagents(t *testing.T) {
	// Not in parallel: it measures.
	for _, g := range generations {
		t.Run(g.name, func(t *testing.T) {
			in, task, answer := newInput(say("Find out.")), say("Slowly, please."), long(4000)
			arguments := fmt.Sprintf(`{"task":%q}`, task)
			sharedModel.answer(t, fixture{Match: match{UserMessage: in.Messages[0].Content}, Response: response{ToolCalls: []modelCall{
				{Name: "researcher", Arguments: arguments}, {Name: "researcher", Arguments: arguments},
			}}})
			sharedModel.answer(t, fixture{Match: match{UserMessage: task}, Response: pours(answer).Response, ChunkSize: 8, Latency: 25})
			d := g.drive(t, shared, script{URL: shared.url(lead), ThreadID: in.ThreadID, Runs: []scriptedRun{{RunID: in.RunID, Messages: in.Messages}}})
			d.until(t, "TEXT_MESSAGE_CONTENT", 10)
			asked := time.Now()
			if got := shared.cancel(t, in); got != http.StatusAccepted {
				t.Fatalf("cancel: %d, want 202", got)
			}
			end := d.finish(t)[0]
			if took := time.Since(asked); took > time.Second {
				t.Errorf("the run ended %s after the cancel", took)
			}
			wantCancelled(t, g, d)
			if n := len(d.events(0, "SUBAGENT_ERROR")); n != 2 {
				t.Errorf("%d subagents were told to stop: %s", n, d.types(0))
			}
			kept := 0
			for _, m := range end.Messages {
				if m.Role == "assistant" && m.Content != "" && strings.HasPrefix(answer, m.Content) {
					kept++
				}
			}
			if kept != 2 {
				t.Errorf("%d beginnings are kept: %+v", kept, end.Messages)
			}
		})
	}
}

// The process is killed while other agents work for a run, twice. They go on, and nothing that was
// finished is done again.
func TestKillSubagents(t *testing.T) {
	p := startPerdure(t)
	var works []*work
	var readers []*follower
	for range 6 {
		w := newWork(t, 2)
		works, readers = append(works, w), append(readers, p.followAgent(t, lead, w.in))
	}
	for kill := range 2 {
		for i, r := range readers {
			r.contents(t, 5*(i+1)+10*kill)
		}
		p.kill()
		p.start(t)
	}
	for i, r := range readers {
		r.finish(t)
		w := works[i]
		w.check(t, show(t, w.in.Messages, r.events))
		for n, task := range w.tasks {
			calculated := 0
			for _, c := range sharedModel.calls(t, task) {
				if heard := c.Body.Messages; heard[len(heard)-1].Role == "user" && heard[0].text() == "You research." {
					calculated++
				}
			}
			if calculated == 0 || calculated > 3 {
				t.Errorf("run %d, task %d: the first call of the model was made %d times", i, n, calculated)
			}
		}
	}
}
