package e2e

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/runs"
)

// paused is a run that is paused behind its tool call.
type paused struct {
	in     input
	answer string
	reader *follower
}

func pauseRun(t *testing.T, p *perdure) *paused {
	t.Helper()
	r := &paused{in: newInput(say("Use your tools, slowly.")), answer: say("Done.")}
	yes, no := true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: r.in.Messages[0].Content, HasToolResult: &no}, Response: response{
			Content: long(100), ToolCalls: []modelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}, ChunkSize: 8, Latency: 25},
		fixture{Match: match{UserMessage: r.in.Messages[0].Content, HasToolResult: &yes}, Response: response{Content: r.answer}})
	r.reader = p.follow(t, r.in)
	r.reader.contents(t, 2)
	tellThread(t, p.endpoint, r.in, "pause", http.StatusNoContent)
	r.reader.until(t, func(e event) bool { return e.Type == "TOOL_CALL_RESULT" })
	return r
}

// tellThread pauses or resumes what runs on a thread.
func tellThread(t *testing.T, p *endpoint, in input, what string, status int) {
	t.Helper()
	resp, err := p.post(t.Context(), "/v1/threads/"+in.ThreadID+"/"+what, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != status {
		t.Errorf("%s: %s, want %d", what, resp.Status, status)
	}
}

// awaitType waits until a thread's workflow is of a type.
func awaitType(t *testing.T, p *endpoint, in input, workflowType string) {
	t.Helper()
	c, err := p.temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		now, err := c.DescribeWorkflowExecution(t.Context(), "thread/default/"+in.ThreadID, "")
		if err != nil {
			t.Fatalf("waiting for %s: %v", workflowType, err)
		}
		if now.GetWorkflowExecutionInfo().GetType().GetName() == workflowType {
			return
		}
	}
}

// A run that is paused for long is parked: it survives the process, and goes on, is cancelled or
// makes way like any other. Whoever watched it goes on watching it.
func TestParked(t *testing.T) {
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.keep(t)
	p.start(t)
	resumed, cancelled, interrupted := pauseRun(t, p), pauseRun(t, p), pauseRun(t, p)
	for _, r := range []*paused{resumed, cancelled, interrupted} {
		awaitType(t, p.endpoint, r.in, runs.TypeParked)
	}
	p.kill()
	p.start(t)

	tellThread(t, p.endpoint, resumed.in, "resume", http.StatusNoContent)
	resumed.reader.finish(t)
	messages := show(t, resumed.in.Messages, resumed.reader.events)
	if n := len(messages); n != 4 || messages[n-1].Content != resumed.answer {
		t.Errorf("the run that was resumed ended with %+v", messages)
	}

	if status := p.cancel(t, cancelled.in); status != http.StatusAccepted {
		t.Errorf("cancel: %d", status)
	}
	cancelled.reader.finish(t)
	wantOutcome(t, cancelled.reader, "cancelled")

	next := interrupted.in.after("run-2", "interrupt", user(say("Stop it.")))
	stopped := say("All right.")
	sharedModel.answerWith(t, next.Messages[1].Content, stopped)
	then := p.follow(t, next)
	interrupted.reader.finish(t)
	wantOutcome(t, interrupted.reader, "cancelled")
	then.finish(t)
	messages = show(t, next.Messages, then.events)
	if last := messages[len(messages)-1]; last.Content != stopped {
		t.Errorf("the run that interrupted ended with %+v", last)
	}
	for r, calls := range map[*paused]int{resumed: 2, cancelled: 1} {
		if n := len(sharedModel.calls(t, r.in.Messages[0].Content)); n != calls {
			t.Errorf("the model was called %d times, want %d", n, calls)
		}
	}
}

func wantOutcome(t *testing.T, f *follower, want string) {
	t.Helper()
	if last := f.events[len(f.events)-1]; outcome(last) != want {
		t.Errorf("the run ended with %s, want %s", last.Data, want)
	}
}
