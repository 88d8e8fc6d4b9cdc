package runs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/e2e/kit"
)

// TestRunWithoutWorkersIsStuck: when the last worker has stopped, the thread of an active run is
// listed as stuck with the reason, and its summary has it, too, as has that of a thread whose run no
// worker has begun. With a worker, the runs end, and no thread is stuck.
func TestRunWithoutWorkersIsStuck(t *testing.T) {
	t.Parallel()
	c := kit.SetupCluster(t)
	a := c.StartAPI(t)
	worker := c.StartWorker(t)
	active, waiting := kit.NewInput(kit.Marked("Tell me a long story.")), kit.NewInput(kit.Marked("And a short one."))
	kit.SharedModel.AnswerInOrder(t, active.Messages[0].Content, kit.SlowAnswer(kit.LongText(400)), kit.Fixture{Response: kit.Response{Content: kit.Marked("The end.")}})
	kit.SharedModel.AnswerWith(t, waiting.Messages[0].Content, kit.Marked("The end."))
	first := a.Follow(t, active)
	first.UntilContent(t, 3)
	if err := worker.Stop(); err != nil {
		t.Fatal(err)
	}
	second := a.Follow(t, waiting)

	const reason = `no worker polls the task queue "perdure": start one`
	var listed []string
	awaitSummary(t, a, active, func(s client.Thread) bool { return s.Stuck != nil })
	for _, item := range listStuck(t, a) {
		listed = append(listed, item.ThreadID+": "+item.Stuck.Reason)
	}
	if got := strings.Join(listed, ", "); got != active.ThreadID+": "+reason {
		t.Errorf("stuck threads: got %q, want %q", got, active.ThreadID+": "+reason)
	}
	for _, in := range []kit.Input{active, waiting} {
		s := awaitSummary(t, a, in, func(s client.Thread) bool { return s.Stuck != nil })
		if s.Stuck.Reason != reason || s.Stuck.TaskQueue != "perdure" || time.Since(s.Stuck.Since) > time.Minute {
			t.Errorf("summary of %s: got %+v, want %q", in.ThreadID, s.Stuck, reason)
		}
	}

	c.StartWorker(t)
	first.Finish(t)
	second.Finish(t)
	for _, in := range []kit.Input{active, waiting} {
		awaitSummary(t, a, in, func(s client.Thread) bool { return s.Status == "idle" && s.Stuck == nil })
	}
	if again := listStuck(t, a); len(again) > 0 {
		t.Errorf("stuck threads after the runs: got %+v, want none", again)
	}
}

// listStuck returns the first page of stuck threads.
func listStuck(t *testing.T, a *kit.API) []client.ThreadItem {
	t.Helper()
	var page client.Page[client.ThreadItem]
	a.GetJSON(t, "/v1/threads?stuck=true", &page)
	return page.Items
}

// awaitSummary waits until the summary of a thread is as wanted, and returns it.
func awaitSummary(t *testing.T, a *kit.API, in kit.Input, isWanted func(client.Thread) bool) client.Thread {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	for {
		var s client.Thread
		a.GetJSON(t, "/v1/threads/"+in.ThreadID, &s)
		if isWanted(s) {
			return s
		}
		select {
		case <-ctx.Done():
			t.Fatalf("summary of %s: got %+v", in.ThreadID, s)
		case <-time.After(100 * time.Millisecond): // poll interval
		}
	}
}
