package devserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// overdue is the timeout after which Temporal dispatches a workflow task of this test again. For an
// activity it would be 30 s. A task for the sticky queue of a worker that left is moved after 2 s.
const overdue = 15 * time.Second

// TestStoppingWorkersLoseNoTask: workers stop one after another while workflows are started
// continuously. No task is lost: none is dispatched to a poll that a stopping worker has abandoned,
// where it would remain until it is overdue.
func TestStoppingWorkersLoseNoTask(t *testing.T) {
	t.Parallel()
	const leaves, atOnce = 20, 16
	s, ctx := mustStart(t, Options{Data: t.TempDir()}), testContext(t)
	c := mustDial(t, s)
	var (
		load   sync.WaitGroup
		enough atomic.Bool
		count  atomic.Int64
		ended  = make(chan struct{}, 1)
		longs  = make([]time.Duration, atOnce)
	)
	for i := range atOnce {
		load.Go(func() {
			for !enough.Load() {
				took, err := runOne(ctx, c, fmt.Sprintf("thread/t/%d", count.Add(1)))
				if err != nil {
					t.Error(err)
					return
				}
				longs[i] = max(longs[i], took)
				select {
				case ended <- struct{}{}:
				default:
				}
			}
		})
	}
	leaving := startLeaver(t, s)
	for range leaves {
		staying := startLeaver(t, s)
		for range atOnce {
			select {
			case <-ended:
			case <-ctx.Done():
			}
		}
		leaving.Stop()
		leaving = staying
	}
	enough.Store(true)
	load.Wait()
	leaving.Stop()
	t.Logf("%d workflows, the slowest took %s", count.Load(), slices.Max(longs).Round(time.Millisecond))
	if slices.Max(longs) >= overdue {
		t.Errorf("longest workflow took %s, want less than %s: a task was lost with a worker", slices.Max(longs), overdue)
	}
}

// runOne runs a workflow and returns how long it took.
func runOne(ctx context.Context, c client.Client, id string) (time.Duration, error) {
	began := time.Now()
	o := workflowOptions(id)
	o.WorkflowTaskTimeout = overdue
	run, err := c.ExecuteWorkflow(ctx, o, attemptWorkflow)
	if err != nil {
		return 0, err
	}
	err = run.Get(ctx, nil)
	return time.Since(began), err
}

// startLeaver starts a worker as a separate process would. Its activities go through the task
// queue.
func startLeaver(t *testing.T, s *Server) worker.Worker {
	t.Helper()
	w := worker.New(mustDial(t, s), taskQueue, worker.Options{
		DisableEagerActivities: true, WorkerStopTimeout: patience, StickyScheduleToStartTimeout: 2 * time.Second,
	})
	w.RegisterWorkflow(attemptWorkflow)
	w.RegisterActivityWithOptions(func(ctx context.Context) (int32, error) { return activity.GetInfo(ctx).Attempt, nil }, activity.RegisterOptions{Name: "attempt"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}
