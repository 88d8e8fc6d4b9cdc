package systemroutes

import (
	"context"
	"slices"
	"strings"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/runs"
)

// Bounds of the requests about task queues: how many queues are described, and how many requests are
// made concurrently.
const (
	maxQueues          = 50
	concurrentRequests = 8
)

// taskQueues describes the main task queue and those of the workers, sorted by name. Queues about
// which Temporal does not answer are left out.
func (r *Routes) taskQueues(ctx context.Context, workers []Worker) []TaskQueue {
	names := []string{runs.TaskQueue}
	for _, w := range workers {
		names = append(names, w.Queues...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	names = names[:min(len(names), maxQueues)]
	var mu sync.Mutex
	queues := []TaskQueue{}
	var group errgroup.Group
	group.SetLimit(concurrentRequests)
	for _, name := range names {
		kinds := []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_ACTIVITY}
		if name == runs.TaskQueue { // the others have tool calls only
			kinds = append(kinds, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		}
		for _, kind := range kinds {
			group.Go(func() error {
				queue, err := r.taskQueue(ctx, name, kind)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				queues = append(queues, queue)
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		r.Logger.WarnContext(ctx, "Temporal does not describe a task queue", "error", err)
	}
	slices.SortFunc(queues, func(a, b TaskQueue) int { return strings.Compare(a.Name+a.Tasks, b.Name+b.Tasks) })
	return queues
}

// taskQueue describes one task queue.
func (r *Routes) taskQueue(ctx context.Context, name string, kind enumspb.TaskQueueType) (TaskQueue, error) {
	described, err := r.Temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     r.Environment.TemporalNamespace,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: name},
		TaskQueueType: kind,
		ReportStats:   true,
	})
	if err != nil {
		return TaskQueue{}, err
	}
	stats := described.GetStats()
	return TaskQueue{
		Name: name, Tasks: strings.ToLower(kind.String()), Pollers: len(described.GetPollers()),
		Backlog: stats.GetApproximateBacklogCount(), BacklogSeconds: stats.GetApproximateBacklogAge().AsDuration().Seconds(),
	}, nil
}
