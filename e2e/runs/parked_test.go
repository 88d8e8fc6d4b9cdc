package runs

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// pausedRun is a run that is paused after its tool call.
type pausedRun struct {
	in     kit.Input
	answer string
	reader *kit.Follower
}

// pauseRun starts a run and pauses it.
func pauseRun(t *testing.T, p *kit.Perdure) *pausedRun {
	t.Helper()
	r := &pausedRun{in: kit.NewInput(kit.Marked("Use your tools, slowly.")), answer: kit.Marked("Done.")}
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: r.in.Messages[0].Content, HasToolResult: &no}, Response: kit.Response{
			Content: kit.LongText(100), ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}, ChunkSize: 8, Latency: 25},
		kit.Fixture{Match: kit.Match{UserMessage: r.in.Messages[0].Content, HasToolResult: &yes}, Response: kit.Response{Content: r.answer}})
	r.reader = p.Follow(t, r.in)
	r.reader.UntilContent(t, 2)
	kit.PostThreadAction(t, p.Endpoint, r.in, "pause", http.StatusNoContent)
	r.reader.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_RESULT" })
	return r
}

// TestParkedRuns: a run that is paused for long is parked. It survives a kill, and can be resumed,
// cancelled or interrupted like any other. Its readers keep reading.
func TestParkedRuns(t *testing.T) {
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	resumed, cancelled, interrupted := pauseRun(t, p), pauseRun(t, p), pauseRun(t, p)
	for _, r := range []*pausedRun{resumed, cancelled, interrupted} {
		kit.AwaitWorkflowType(t, p.Endpoint, r.in, runs.TypeParked)
	}
	p.Kill()
	p.Start(t)

	kit.PostThreadAction(t, p.Endpoint, resumed.in, "resume", http.StatusNoContent)
	resumed.reader.Finish(t)
	messages := kit.ShownMessages(t, resumed.in.Messages, resumed.reader.Events)
	if n := len(messages); n != 4 || messages[n-1].Content != resumed.answer {
		t.Errorf("messages of the resumed run = %+v, want 4 with the answer", messages)
	}

	if status := p.Cancel(t, cancelled.in); status != http.StatusAccepted {
		t.Errorf("cancel: got %d, want %d", status, http.StatusAccepted)
	}
	cancelled.reader.Finish(t)
	kit.WantOutcome(t, cancelled.reader, "cancelled")

	next := interrupted.in.NextRun("run-2", "interrupt", kit.UserMessage(kit.Marked("Stop it.")))
	stopped := kit.Marked("All right.")
	kit.SharedModel.AnswerWith(t, next.Messages[1].Content, stopped)
	then := p.Follow(t, next)
	interrupted.reader.Finish(t)
	kit.WantOutcome(t, interrupted.reader, "cancelled")
	then.Finish(t)
	messages = kit.ShownMessages(t, next.Messages, then.Events)
	if last := messages[len(messages)-1]; last.Content != stopped {
		t.Errorf("last message of the interrupting run = %q, want %q", last.Content, stopped)
	}
	for r, calls := range map[*pausedRun]int{resumed: 2, cancelled: 1} {
		if n := len(kit.SharedModel.Calls(t, r.in.Messages[0].Content)); n != calls {
			t.Errorf("the model was called %d times, want %d", n, calls)
		}
	}
}
