package runs

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// Runs that wait for their thread take their turns in order, also over a kill, and each knows what
// those before it said.
func TestRunsWaitInLine(t *testing.T) {
	p := kit.Setup(t)
	first := kit.NewInput(kit.Say("Slowly, please."))
	second := first.After("run-2", "enqueue", kit.User(kit.Say("And then?")))
	third := second.After("run-3", "enqueue", kit.User(kit.Say("And at last?")))
	long, then, last := kit.Long(600), kit.Say("Then this."), kit.Say("That is all.")
	kit.SharedModel.Attempts(t, first.Messages[0].Content, kit.Pours(long), kit.Pours(long))
	kit.SharedModel.AnswerWith(t, second.Messages[1].Content, then)
	kit.SharedModel.AnswerWith(t, third.Messages[2].Content, last)

	active := p.Follow(t, first)
	active.Contents(t, 3)
	readers := []*kit.Follower{p.Follow(t, second), p.Follow(t, third)}
	active.Contents(t, 3)
	p.Kill()
	p.Start(t)
	active.Finish(t)
	for _, f := range readers {
		f.Finish(t)
	}
	want := []kit.Message{first.Messages[0], kit.Says(long), second.Messages[1], kit.Says(then), third.Messages[2], kit.Says(last)}
	kit.WantMessages(t, want, kit.Show(t, third.Messages, readers[1].Events))
	calls := kit.SharedModel.Calls(t, third.Messages[2].Content)
	if len(calls) != 1 {
		t.Fatalf("the model was called %d times for the last run", len(calls))
	}
	var heard []string
	for _, m := range calls[0].Body.Messages {
		if m.Role != "system" {
			heard = append(heard, m.Text())
		}
	}
	if want := []string{want[0].Content, long, want[2].Content, then, want[4].Content}; !slices.Equal(heard, want) {
		t.Errorf("the model heard %q", heard)
	}
	kit.Same(t, "the second run, asked for again", readers[0].Events, p.Run(t, second))
}

// A run that interrupts takes the place of the one that is active: that one is cancelled at once
// and keeps what it has said.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	first := kit.NewInput(kit.Say("On and on."))
	second := first.After("run-2", "interrupt", kit.User(kit.Say("Stop it.")))
	stopped := kit.Say("All right.")
	kit.SharedModel.Attempts(t, first.Messages[0].Content, kit.Pours(kit.Long(20_000)))
	kit.SharedModel.AnswerWith(t, second.Messages[1].Content, stopped)
	active := kit.Shared.Follow(t, first)
	active.Contents(t, 3)
	next := kit.Shared.Follow(t, second)
	active.Finish(t)
	next.Finish(t)
	if last := string(active.Events[len(active.Events)-1].Data); !strings.Contains(last, `"cancelled"`) {
		t.Errorf("the interrupted run ended with %s", last)
	}
	said := kit.Show(t, first.Messages, active.Events)[1]
	kit.WantMessages(t, []kit.Message{first.Messages[0], said, second.Messages[1], kit.Says(stopped)}, kit.Show(t, second.Messages, next.Events))
}

// A paused run waits before its next step until it is resumed.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Say("Use your tools, slowly."))
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &no}, Response: kit.Response{
			Content: kit.Long(200), ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}, ChunkSize: 8, Latency: 25},
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &yes}, Response: kit.Response{Content: kit.Say("Done.")}})
	f := kit.Shared.Follow(t, in)
	f.Contents(t, 2)
	kit.TellThread(t, kit.Shared.Endpoint, in, "pause", http.StatusNoContent)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("%d model calls while the run is paused", n)
	}
	kit.TellThread(t, kit.Shared.Endpoint, in, "resume", http.StatusNoContent)
	f.Finish(t)
	kit.Show(t, in.Messages, f.Events)
	kit.TellThread(t, kit.Shared.Endpoint, in, "pause", http.StatusConflict)
}

// Many turns are more than one execution's history can take: the run goes on in another one, and
// nobody who reads it sees where.
func TestRunContinuesAsNew(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Say("Again and again."))
	const turns = 400
	fixtures := make([]kit.Fixture, turns)
	for i := range fixtures {
		fixtures[i].Response.ToolCalls = []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}}
	}
	done := kit.Say("Enough.")
	fixtures[turns-1].Response = kit.Response{Content: done}
	kit.SharedModel.Attempts(t, in.Messages[0].Content, fixtures...)
	f := kit.Shared.FollowAgent(t, "/v1/agents/tireless/runs", in)
	f.Finish(t)
	messages := kit.Show(t, in.Messages, f.Events)
	if n := len(messages); n != 2*turns || messages[n-1].Content != done {
		t.Errorf("%d messages, the last is %+v", n, messages[n-1])
	}
	if n := kit.Shared.ExecutionsOf(t, in); n < 2 {
		t.Errorf("it took %d executions", n)
	}
	again := kit.Shared.Behind(t, in, f.Events[:len(f.Events)/2])
	again.Finish(t)
	kit.Same(t, "the second half", f.Events, again.Events)
}

// What is said to a run while it is under way is told to the model with its next call, and shown to
// everybody.
func TestSteer(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Say("Slowly, please."))
	aside, long, turned := kit.User(kit.Say("No, the other one!")), kit.Long(400), kit.Say("The other one.")
	kit.SharedModel.Attempts(t, in.Messages[0].Content, kit.Pours(long))
	kit.SharedModel.AnswerWith(t, aside.Content, turned)
	f := kit.Shared.Follow(t, in)
	f.Contents(t, 2)
	for _, repeated := range []bool{false, true} {
		resp, err := kit.Shared.Post(t.Context(), "/v1/threads/"+in.ThreadID+"/messages", map[string]any{"message": aside})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusAccepted || strings.Contains(string(body), `"repeated":true`) != repeated {
			t.Errorf("%s %s, %v", resp.Status, body, err)
		}
	}
	f.Finish(t)
	want := []kit.Message{in.Messages[0], kit.Says(long), aside, kit.Says(turned)}
	kit.WantMessages(t, want, kit.Show(t, in.Messages, f.Events))
	if calls := kit.SharedModel.Calls(t, aside.Content); len(calls) != 1 {
		t.Errorf("the model was told %d times", len(calls))
	}
}
