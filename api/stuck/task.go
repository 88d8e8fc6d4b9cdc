package stuck

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/stream"
)

// maxWorkflows bounds the workflows of a thread that are described: its own, and those of subagents
// and branches.
const maxWorkflows = 20

// minFailures is the number of the attempt from which a workflow task counts as failing again and
// again. The death of a worker fails one attempt.
const minFailures = 3

// task is a task without which a run makes no progress.
type task struct {
	queue queue
	since time.Time
	// isFailing tells that workers take the workflow task and fail it; otherwise no worker takes the
	// task.
	isFailing bool
}

// queue is a task queue with one kind of tasks. BuildID is the version of workers that may take the
// task; "" = any.
type queue struct {
	name    string
	kind    enums.TaskQueueType
	buildID string
}

// waitingTask returns the task for which the run of a thread waits; nil = the run makes progress, waits
// for people, or has no workflow. It describes the thread's workflow and then its children, until
// one has such a task.
func waitingTask(ctx context.Context, temporal client.Client, thread stream.Thread) (*task, error) {
	type execution struct{ workflow, run string }
	open := []execution{{workflow: dispatch.WorkflowID(thread)}}
	for described := 0; described < len(open) && described < maxWorkflows; described++ {
		w, err := temporal.DescribeWorkflowExecution(ctx, open[described].workflow, open[described].run)
		var notFound *serviceerror.NotFound
		switch {
		case errors.As(err, &notFound):
			continue // it has just ended
		case err != nil:
			return nil, err
		case w.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
			continue
		}
		if waiting := taskOf(w, time.Now()); waiting != nil {
			return waiting, nil
		}
		for _, child := range w.GetPendingChildren() {
			open = append(open, execution{child.GetWorkflowId(), child.GetRunId()})
		}
	}
	return nil, nil
}

// taskOf returns the task of one workflow without which it makes no progress; nil = none.
func taskOf(w *workflowservice.DescribeWorkflowExecutionResponse, now time.Time) *task {
	own := queue{name: w.GetExecutionConfig().GetTaskQueue().GetName(), kind: enums.TASK_QUEUE_TYPE_WORKFLOW}
	if v := w.GetWorkflowExecutionInfo().GetVersioningInfo(); v.GetBehavior() == enums.VERSIONING_BEHAVIOR_PINNED {
		own.buildID = v.GetDeploymentVersion().GetBuildId()
	}
	if pending := w.GetPendingWorkflowTask(); pending != nil {
		scheduled := timeOf(pending.GetScheduledTime())
		switch {
		case pending.GetState() == enums.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && now.Sub(scheduled) >= MinWait:
			return &task{queue: own, since: scheduled}
		case pending.GetAttempt() >= minFailures:
			return &task{queue: own, since: earliest(timeOf(pending.GetOriginalScheduledTime()), scheduled), isFailing: true}
		}
	}
	for _, activity := range w.GetPendingActivities() {
		scheduled := timeOf(activity.GetScheduledTime())
		if activity.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED || now.Sub(scheduled) < MinWait {
			continue
		}
		q := queue{name: activity.GetActivityOptions().GetTaskQueue().GetName(), kind: enums.TASK_QUEUE_TYPE_ACTIVITY}
		if q.name == own.name {
			q.buildID = own.buildID
		}
		return &task{queue: q, since: scheduled}
	}
	return nil
}

// timeOf returns a time of Temporal; zero = it is missing.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// earliest returns the earlier time of those that are not zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
