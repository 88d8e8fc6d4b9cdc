package stuck

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/stream"
)

// MinWait is how long a task must wait for a worker before its run counts as stuck.
const MinWait = 10 * time.Second

// concurrentRequests bounds the concurrent requests of one Check.
const concurrentRequests = 8

// Checker asks Temporal about the runs of threads. It is safe for concurrent use.
type Checker struct {
	Temporal client.Client
}

// Stuck tells why a run makes no progress.
type Stuck struct {
	// Reason is a sentence that tells an operator what to do. It has no content of the conversation.
	Reason string `json:"reason"`
	// TaskQueue is the task queue of the task that waits.
	TaskQueue string `json:"taskQueue"`
	// Since is when the task began to wait, or to fail.
	Since time.Time `json:"since"`
}

// Check returns for each thread why its run is stuck; nil = it makes progress, waits for people, or has
// no workflow. It makes some requests for each thread, and one for each task queue.
func (c *Checker) Check(ctx context.Context, threads ...stream.Thread) ([]*Stuck, error) {
	tasks := make([]*task, len(threads))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentRequests)
	for i, thread := range threads {
		group.Go(func() (err error) {
			tasks[i], err = waitingTask(groupCtx, c.Temporal, thread)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("api: describe workflow: %w", err)
	}
	polled, err := c.lastPolls(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("api: describe task queue: %w", err)
	}
	all := make([]*Stuck, len(threads))
	for i, t := range tasks {
		if t != nil {
			all[i] = &Stuck{Reason: t.reason(polled[t.queue]), TaskQueue: t.queue.name, Since: t.since.UTC().Truncate(time.Millisecond)}
		}
	}
	return all, nil
}

// lastPolls returns when a worker has polled the task queues of tasks last. A queue that no worker
// has polled in the last minutes is missing.
func (c *Checker) lastPolls(ctx context.Context, tasks []*task) (map[queue]time.Time, error) {
	queues := map[queue]bool{}
	for _, t := range tasks {
		if t != nil && !t.isFailing {
			queues[t.queue] = true
		}
	}
	var mu sync.Mutex
	polled := map[queue]time.Time{}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentRequests)
	for q := range queues {
		group.Go(func() error {
			described, err := c.Temporal.DescribeTaskQueue(groupCtx, q.name, q.kind)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range described.GetPollers() {
				isAble := q.buildID == "" || p.GetDeploymentOptions().GetBuildId() == q.buildID
				if at := timeOf(p.GetLastAccessTime()); isAble && at.After(polled[q]) {
					polled[q] = at
				}
			}
			return nil
		})
	}
	return polled, group.Wait()
}
