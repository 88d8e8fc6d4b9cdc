package cluster

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// TestWorkerHangsDuringModelCall: a worker hangs during a model call, within the workflow task and
// after the call has left it. Another worker makes the call again, within seconds. When the first one
// continues, it is fenced: readers see nothing of it.
func TestWorkerHangsDuringModelCall(t *testing.T) {
	// Not parallel: the test measures time.
	for name, content := range map[string]int{"within the task": 1, "after it": 80} {
		t.Run(name, func(t *testing.T) {
			c := kit.SetupCluster(t)
			a := c.StartAPI(t)
			hung := c.StartWorker(t)
			in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.Marked("This is it.")
			kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(kit.LongText(8000)), kit.FastAnswer(answer))
			f := a.Follow(t, in)
			f.UntilContent(t, content)
			c.StartWorker(t)
			hung.Freeze(t)
			froze := time.Now()
			f.Finish(t)
			if took := time.Since(froze); took > takeover {
				t.Errorf("the run ended %s after its worker hung, want at most %s", took, aim)
			}
			hung.Thaw(t)
			if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 2 {
				t.Errorf("number of model calls = %d, want 2", n)
			}
			want := append(slices.Clone(in.Messages), kit.AssistantMessage(answer))
			kit.WantMessages(t, want, kit.ShownMessages(t, in.Messages, f.Events))
			next := in.NextRun("run-2", "", kit.UserMessage(kit.Marked("And then?")))
			then := kit.Marked("That was all.")
			kit.SharedModel.AnswerWith(t, next.Messages[1].Content, then)
			events := a.Run(t, next)
			kit.WantMessages(t, append(want, next.Messages[1], kit.AssistantMessage(then)), kit.ShownMessages(t, next.Messages, events))
		})
	}
}

// TestKillAfterTerminalRecord: the worker dies after the end of a run is in the log, and before
// Temporal knows anything of its workflow task. The next worker repeats the task: it finds the answer
// of the model, and with it the approvals that the run has ended with.
func TestKillAfterTerminalRecord(t *testing.T) {
	t.Parallel()
	c := kit.NewCluster(t)
	temporal := c.StartTemporal(t)
	c.StartNATS(t, 1)
	a := c.StartAPI(t)
	worker := c.StartWorker(t)
	in, answer := kit.NewInput(kit.Marked("How much is it?")), kit.Marked("42.")
	asking := kit.Fixture{Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}}}, ChunkSize: 4, Latency: 60}
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, asking, kit.FastAnswer(answer))
	f := a.FollowAgent(t, "/v1/agents/careful/runs", in)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TOOL_CALL_ARGS" })
	temporal.Freeze(t)
	f.Finish(t)
	kit.WantOutcome(t, f, "interrupt")
	worker.Kill()
	temporal.Thaw(t)
	c.StartWorker(t)
	id := kit.InterruptsOf(t, f.Events)[0].ID
	a.AwaitInboxItem(t, in, id)
	if status, decided := kit.Decide(t, a.Endpoint, in.ThreadID, id, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("decision = %d %v, want 200", status, decided)
	}
	thread := a.FollowThread(t, in)
	thread.UntilSuccess(t)
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 2 {
		t.Errorf("number of model calls = %d, want 2", n)
	}
}
