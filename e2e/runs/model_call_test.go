package runs

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/runs"
)

// TestTextRunIsOneWorkflowTask: a run with one short answer is one workflow task: two round trips to
// Temporal, its start and its end.
func TestTextRunIsOneWorkflowTask(t *testing.T) {
	t.Parallel()
	in := kit.NewInput(kit.Marked("Quickly, please."))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("Here."))
	kit.Shared.Run(t, in)
	h := kit.Shared.History(t, in)
	if n := len(h.GetEvents()); n > 8 {
		t.Errorf("number of history events = %d, want at most 8", n)
	}
	if scheduled := modelActivities(h); len(scheduled) > 0 {
		t.Errorf("activities of model calls = %v, want none", scheduled)
	}
}

// modelActivities returns the task queues of the activities that a workflow has scheduled for model
// calls, in order.
func modelActivities(h *historypb.History) (queues []string) {
	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == runs.ActivityCallModel {
			queues = append(queues, a.GetTaskQueue().GetName())
		}
	}
	return queues
}

// TestLongModelCallLeavesTask: a model call that takes several seconds leaves its workflow task, and
// continues under an activity of the same process. The model is called once, and readers notice nothing.
func TestLongModelCallLeavesTask(t *testing.T) {
	t.Parallel()
	in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(1200) // about 4 s
	kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
	f := kit.Shared.Follow(t, in)
	f.Finish(t)
	kit.WantMessages(t, append(slices.Clone(in.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, f.Events))
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
		t.Errorf("number of model calls = %d, want 1", n)
	}
	scheduled := modelActivities(kit.Shared.History(t, in))
	if len(scheduled) != 1 || !strings.HasPrefix(scheduled[0], runs.ProcessQueuePrefix) {
		t.Errorf("task queues of activities for model calls = %v, want that of the process", scheduled)
	}
}

// TestUpdateDuringModelCall: the workflow takes an update soon, although a model call within its task
// has just begun. The call goes on.
func TestUpdateDuringModelCall(t *testing.T) {
	t.Parallel()
	const rounds = 5
	var took []time.Duration
	for range rounds {
		in, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.LongText(600)
		kit.SharedModel.AnswerInOrder(t, in.Messages[0].Content, kit.SlowAnswer(answer))
		f := kit.Shared.Follow(t, in)
		f.UntilContent(t, 1)
		asked := time.Now()
		kit.PostThreadAction(t, kit.Shared.Endpoint, in, "pause", http.StatusNoContent)
		took = append(took, time.Since(asked))
		kit.PostThreadAction(t, kit.Shared.Endpoint, in, "resume", http.StatusNoContent)
		f.Finish(t)
		kit.WantMessages(t, append(slices.Clone(in.Messages), kit.AssistantMessage(answer)), kit.ShownMessages(t, in.Messages, f.Events))
		if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
			t.Errorf("number of model calls = %d, want 1", n)
		}
		if scheduled := modelActivities(kit.Shared.History(t, in)); len(scheduled) != 1 {
			t.Errorf("activities for the model call = %v, want one, since the call has left its task", scheduled)
		}
	}
	// Without the announcement, an update waits until the call has been in the task for 1.2 s.
	if median := slices.Sorted(slices.Values(took))[rounds/2]; median > 600*time.Millisecond {
		t.Errorf("updates took %v, want less than 600ms in the median", took)
	}
}
