package e2e

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// asks returns what a client wants of us beside what the protocol has.
func asks(props map[string]any) map[string]any { return map[string]any{"perdure": props} }

// after returns the next run of a thread, whose client has not seen the answers of those before it.
func (in input) after(runID, onBusy string, next message) input {
	in.RunID, in.Messages = runID, append(slices.Clone(in.Messages), next)
	in.ForwardedProps = asks(map[string]any{"onBusy": onBusy})
	return in
}

// Runs that wait for their thread take their turns in order, also over a kill, and each knows what
// those before it said.
func TestRunsWaitInLine(t *testing.T) {
	p := startPerdure(t)
	first := newInput(say("Slowly, please."))
	second := first.after("run-2", "enqueue", user(say("And then?")))
	third := second.after("run-3", "enqueue", user(say("And at last?")))
	long, then, last := long(600), say("Then this."), say("That is all.")
	sharedModel.attempts(t, first.Messages[0].Content, pours(long), pours(long))
	sharedModel.answerWith(t, second.Messages[1].Content, then)
	sharedModel.answerWith(t, third.Messages[2].Content, last)

	active := p.follow(t, first)
	active.contents(t, 3)
	readers := []*follower{p.follow(t, second), p.follow(t, third)}
	active.contents(t, 3)
	p.kill()
	p.start(t)
	active.finish(t)
	for _, f := range readers {
		f.finish(t)
	}
	want := []message{first.Messages[0], says(long), second.Messages[1], says(then), third.Messages[2], says(last)}
	wantMessages(t, want, show(t, third.Messages, readers[1].events))
	calls := sharedModel.calls(t, third.Messages[2].Content)
	if len(calls) != 1 {
		t.Fatalf("the model was called %d times for the last run", len(calls))
	}
	var heard []string
	for _, m := range calls[0].Body.Messages {
		if m.Role != "system" {
			heard = append(heard, m.text())
		}
	}
	if want := []string{want[0].Content, long, want[2].Content, then, want[4].Content}; !slices.Equal(heard, want) {
		t.Errorf("the model heard %q", heard)
	}
	same(t, "the second run, asked for again", readers[0].events, p.run(t, second))
}

// A run that interrupts takes the place of the one that is active: that one is cancelled at once
// and keeps what it has said.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	first := newInput(say("On and on."))
	second := first.after("run-2", "interrupt", user(say("Stop it.")))
	stopped := say("All right.")
	sharedModel.attempts(t, first.Messages[0].Content, pours(long(20_000)))
	sharedModel.answerWith(t, second.Messages[1].Content, stopped)
	active := shared.follow(t, first)
	active.contents(t, 3)
	next := shared.follow(t, second)
	active.finish(t)
	next.finish(t)
	if last := string(active.events[len(active.events)-1].Data); !strings.Contains(last, `"cancelled"`) {
		t.Errorf("the interrupted run ended with %s", last)
	}
	said := show(t, first.Messages, active.events)[1]
	wantMessages(t, []message{first.Messages[0], said, second.Messages[1], says(stopped)}, show(t, second.Messages, next.events))
}

// A paused run waits before its next step until it is resumed.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	in := newInput(say("Use your tools, slowly."))
	yes, no := true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: in.Messages[0].Content, HasToolResult: &no}, Response: response{
			Content: long(200), ToolCalls: []modelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}, ChunkSize: 8, Latency: 25},
		fixture{Match: match{UserMessage: in.Messages[0].Content, HasToolResult: &yes}, Response: response{Content: say("Done.")}})
	f := shared.follow(t, in)
	f.contents(t, 2)
	tellThread(t, shared.endpoint, in, "pause", http.StatusNoContent)
	f.until(t, func(e event) bool { return e.Type == "TOOL_CALL_RESULT" })
	if n := len(sharedModel.calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls while the run is paused", n)
	}
	tellThread(t, shared.endpoint, in, "resume", http.StatusNoContent)
	f.finish(t)
	show(t, in.Messages, f.events)
	tellThread(t, shared.endpoint, in, "pause", http.StatusConflict)
}

// Many turns are more than one execution's history can take: the run goes on in another one, and
// nobody who reads it sees where.
func TestRunContinuesAsNew(t *testing.T) {
	t.Parallel()
	in := newInput(say("Again and again."))
	const turns = 400
	fixtures := make([]fixture, turns)
	for i := range fixtures {
		fixtures[i].Response.ToolCalls = []modelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}}
	}
	done := say("Enough.")
	fixtures[turns-1].Response = response{Content: done}
	sharedModel.attempts(t, in.Messages[0].Content, fixtures...)
	f := shared.followAgent(t, "/v1/agents/tireless/runs", in)
	f.finish(t)
	messages := show(t, in.Messages, f.events)
	if n := len(messages); n != 2*turns || messages[n-1].Content != done {
		t.Errorf("%d messages, the last is %+v", n, messages[n-1])
	}
	if n := shared.executionsOf(t, in); n < 2 {
		t.Errorf("it took %d executions", n)
	}
	again := shared.behind(t, in, f.events[:len(f.events)/2])
	again.finish(t)
	same(t, "the second half", f.events, again.events)
}

// executionsOf counts the executions that a thread has had.
func (p *endpoint) executionsOf(t *testing.T, in input) int {
	t.Helper()
	c, err := p.temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := listExecutions(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if e.GetExecution().GetWorkflowId() == "thread/default/"+in.ThreadID {
			n++
		}
	}
	return n
}

// What is said to a run while it is under way is told to the model with its next call, and shown to
// everybody.
func TestSteer(t *testing.T) {
	t.Parallel()
	in := newInput(say("Slowly, please."))
	aside, long, turned := user(say("No, the other one!")), long(400), say("The other one.")
	sharedModel.attempts(t, in.Messages[0].Content, pours(long))
	sharedModel.answerWith(t, aside.Content, turned)
	f := shared.follow(t, in)
	f.contents(t, 2)
	for _, repeated := range []bool{false, true} {
		resp, err := shared.post(t.Context(), "/v1/threads/"+in.ThreadID+"/messages", map[string]any{"message": aside})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusAccepted || strings.Contains(string(body), `"repeated":true`) != repeated {
			t.Errorf("%s %s, %v", resp.Status, body, err)
		}
	}
	f.finish(t)
	want := []message{in.Messages[0], says(long), aside, says(turned)}
	wantMessages(t, want, show(t, in.Messages, f.events))
	if calls := sharedModel.calls(t, aside.Content); len(calls) != 1 {
		t.Errorf("the model was told %d times", len(calls))
	}
}
