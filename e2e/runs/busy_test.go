package runs

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestQueuedRuns: queued runs start in order, also over a kill, and each has the conversation of
// the earlier ones.
func TestQueuedRuns(t *testing.T) {
	p := kit.Setup(t)
	first := kit.NewInput(kit.Marked("Slowly, please."))
	second := first.NextRun("run-2", "enqueue", kit.UserMessage(kit.Marked("And then?")))
	third := second.NextRun("run-3", "enqueue", kit.UserMessage(kit.Marked("And at last?")))
	long, then, last := kit.LongText(600), kit.Marked("Then this."), kit.Marked("That is all.")
	kit.SharedModel.AnswerInOrder(t, first.Messages[0].Content, kit.SlowAnswer(long), kit.SlowAnswer(long))
	kit.SharedModel.AnswerWith(t, second.Messages[1].Content, then)
	kit.SharedModel.AnswerWith(t, third.Messages[2].Content, last)

	active := p.Follow(t, first)
	active.UntilContent(t, 3)
	readers := []*kit.Follower{p.Follow(t, second), p.Follow(t, third)}
	active.UntilContent(t, 3)
	p.Kill()
	p.Start(t)
	active.Finish(t)
	for _, f := range readers {
		f.Finish(t)
	}
	want := []kit.Message{first.Messages[0], kit.AssistantMessage(long), second.Messages[1], kit.AssistantMessage(then), third.Messages[2], kit.AssistantMessage(last)}
	kit.WantMessages(t, want, kit.ShownMessages(t, third.Messages, readers[1].Events))
	calls := kit.SharedModel.Calls(t, third.Messages[2].Content)
	if len(calls) != 1 {
		t.Fatalf("number of model calls of the last run = %d, want 1", len(calls))
	}
	var heard []string
	for _, m := range calls[0].Body.Messages {
		if m.Role != "system" {
			heard = append(heard, m.Text())
		}
	}
	if want := []string{want[0].Content, long, want[2].Content, then, want[4].Content}; !slices.Equal(heard, want) {
		t.Errorf("messages sent to the model = %q, want %q", heard, want)
	}
	kit.WantSameEvents(t, "the second run, asked for again", readers[0].Events, p.Run(t, second))
}

// TestInterrupt: a run with onBusy interrupt cancels the active run at once. The cancelled run
// keeps what it has said.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	first := kit.NewInput(kit.Marked("On and on."))
	second := first.NextRun("run-2", "interrupt", kit.UserMessage(kit.Marked("Stop it.")))
	stopped := kit.Marked("All right.")
	kit.SharedModel.AnswerInOrder(t, first.Messages[0].Content, kit.SlowAnswer(kit.LongText(20_000)))
	kit.SharedModel.AnswerWith(t, second.Messages[1].Content, stopped)
	active := kit.Shared.Follow(t, first)
	active.UntilContent(t, 3)
	next := kit.Shared.Follow(t, second)
	active.Finish(t)
	next.Finish(t)
	if last := string(active.Events[len(active.Events)-1].Data); !strings.Contains(last, `"cancelled"`) {
		t.Errorf("end of the interrupted run = %s, want cancelled", last)
	}
	said := kit.ShownMessages(t, first.Messages, active.Events)[1]
	kit.WantMessages(t, []kit.Message{first.Messages[0], said, second.Messages[1], kit.AssistantMessage(stopped)}, kit.ShownMessages(t, second.Messages, next.Events))
}

// TestPauseAndResume: a paused run waits before its next step until it is resumed.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Use your tools, slowly."))
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &no}, Response: kit.Response{
			Content: kit.LongText(200), ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}, ChunkSize: 8, Latency: 25},
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &yes}, Response: kit.Response{Content: kit.Marked("Done.")}})
	f := kit.Shared.Follow(t, in)
	f.UntilContent(t, 2)
	kit.PostThreadAction(t, kit.Shared.Endpoint, in, "pause", http.StatusNoContent)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("number of model calls while the run is paused = %d, want 1", n)
	}
	kit.PostThreadAction(t, kit.Shared.Endpoint, in, "resume", http.StatusNoContent)
	f.Finish(t)
	kit.ShownMessages(t, in.Messages, f.Events)
	kit.PostThreadAction(t, kit.Shared.Endpoint, in, "pause", http.StatusConflict)
}

// TestRunContinuesAsNew: a run with many turns continues as new, since they exceed the history of
// one execution. Readers do not notice.
func TestRunContinuesAsNew(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Again and again."))
	const turns = 640
	c := kit.NewCluster(t)
	c.StartServers(t, "-history-events", "100")
	a := c.StartAPI(t)
	c.StartWorker(t)
	fixtures := make([]kit.Fixture, turns)
	for i := range fixtures {
		fixtures[i].Response.ToolCalls = []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}}
	}
	done := kit.Marked("Enough.")
	fixtures[turns-1].Response = kit.Response{Content: done}
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, fixtures...)
	f := a.FollowAgent(t, "/v1/agents/tireless/runs", in)
	f.Finish(t)
	messages := kit.ShownMessages(t, in.Messages, f.Events)
	if n := len(messages); n != 2*turns || messages[n-1].Content != done {
		t.Errorf("got %d messages, the last %+v, want %d with the answer", n, messages[n-1], 2*turns)
	}
	if n := a.ExecutionsOf(t, in); n < 2 {
		t.Errorf("number of executions = %d, want at least 2", n)
	}
	again := a.FollowAfter(t, in, f.Events[:len(f.Events)/2])
	again.Finish(t)
	kit.WantSameEvents(t, "the second half", f.Events, again.Events)
}

// TestSteer: a steering message reaches the next model call, and all readers see it.
func TestSteer(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Slowly, please."))
	aside, long, turned := kit.UserMessage(kit.Marked("No, the other one!")), kit.LongText(400), kit.Marked("The other one.")
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(long))
	kit.SharedModel.AnswerWith(t, aside.Content, turned)
	f := kit.Shared.Follow(t, in)
	f.UntilContent(t, 2)
	for _, repeated := range []bool{false, true} {
		resp, err := kit.Shared.Post(t.Context(), "/v1/threads/"+in.ThreadID+"/messages", map[string]any{"message": aside})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusAccepted || strings.Contains(string(body), `"repeated":true`) != repeated {
			t.Errorf("steering: got %s %s, %v, want %d, repeated: %t", resp.Status, body, err, http.StatusAccepted, repeated)
		}
	}
	f.Finish(t)
	want := []kit.Message{in.Messages[0], kit.AssistantMessage(long), aside, kit.AssistantMessage(turned)}
	kit.WantMessages(t, want, kit.ShownMessages(t, in.Messages, f.Events))
	if calls := kit.SharedModel.Calls(t, aside.Content); len(calls) != 1 {
		t.Errorf("number of model calls = %d, want 1", len(calls))
	}
}
