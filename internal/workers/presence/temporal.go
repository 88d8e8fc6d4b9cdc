package presence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/perdure/perdure/runs"
)

// ShutdownWorkers returns a Shutdown. Temporal ends the polls if its frontend is configured to (see
// deploy/temporal/dynamicconfig.yaml).
func ShutdownWorkers(service workflowservice.WorkflowServiceClient, namespace string) Shutdown {
	return func(ctx context.Context, worker string, dead Poller) error {
		_, err := service.ShutdownWorker(ctx, &workflowservice.ShutdownWorkerRequest{
			Namespace: namespace, Identity: worker, Reason: "the worker process has died or hangs",
			WorkerInstanceKey: dead.InstanceKey, TaskQueue: dead.Queue, StickyTaskQueue: dead.StickyQueue,
			TaskQueueTypes: []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY},
		})
		return ignoreNotFound(err)
	}
}

// FailTasks returns a Fail that reports the failure to Temporal by task token. Temporal then
// dispatches a workflow task at once, to any worker.
func FailTasks(service workflowservice.WorkflowServiceClient, namespace string) Fail {
	return func(ctx context.Context, worker string, failed Task) (err error) {
		if failed.IsWorkflow {
			_, err = service.RespondWorkflowTaskFailed(ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
				Namespace: namespace, TaskToken: failed.Token, Identity: worker,
				Cause:   enums.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
				Failure: &failurepb.Failure{Message: "the worker process ended during the workflow task"},
			})
		} else {
			_, err = service.RespondActivityTaskFailed(ctx, &workflowservice.RespondActivityTaskFailedRequest{
				Namespace: namespace, TaskToken: failed.Token, Identity: worker, Failure: workerLost(),
			})
		}
		return ignoreNotFound(err)
	}
}

// workerLost returns the failure of an attempt whose worker died.
func workerLost() *failurepb.Failure {
	return &failurepb.Failure{
		Message: "the worker process ended while the activity ran",
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
			Type:           runs.ErrorWorkerLost,
			NextRetryDelay: durationpb.New(time.Millisecond), // zero would mean the policy's backoff
		}},
	}
}

// ignoreNotFound returns nil for NotFound: the attempt or workflow has ended.
func ignoreNotFound(err error) error {
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	return err
}

// maxSearched bounds the workflows that a sweep examines, sweepConcurrency those that it examines
// concurrently. Attempts that a sweep does not find are found by their heartbeat timeout.
const (
	maxSearched      = 5000
	sweepConcurrency = 16
)

// SweepAttempts returns a Sweep for workflows of the given types. It lists the open ones, and
// examines the pending activities of each for attempts that the dead worker had.
func SweepAttempts(service workflowservice.WorkflowServiceClient, namespace string, workflowTypes ...string) Sweep {
	query := `ExecutionStatus = "Running" AND WorkflowType IN ("` + strings.Join(workflowTypes, `","`) + `")`
	return func(ctx context.Context, worker string) (found int, err error) {
		var failed atomic.Int64
		var next []byte
		for searched := 0; searched < maxSearched; {
			page, err := service.ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
				Namespace: namespace, Query: query, PageSize: 500, NextPageToken: next,
			})
			if err != nil {
				return int(failed.Load()), fmt.Errorf("presence: list workflows: %w", err)
			}
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(sweepConcurrency)
			for _, e := range page.GetExecutions() {
				g.Go(func() error {
					n, err := failDispatchedAttempts(ctx, service, namespace, e.GetExecution(), worker)
					failed.Add(int64(n))
					return err
				})
			}
			if err := g.Wait(); err != nil {
				return int(failed.Load()), err
			}
			searched += len(page.GetExecutions())
			if next = page.GetNextPageToken(); len(next) == 0 {
				break
			}
		}
		return int(failed.Load()), nil
	}
}

// failDispatchedAttempts fails the attempts of one workflow that Temporal has given to a worker,
// and returns their number. A worker's identity in Temporal is its name here.
func failDispatchedAttempts(ctx context.Context, service workflowservice.WorkflowServiceClient, namespace string, e *commonpb.WorkflowExecution, worker string) (n int, err error) {
	now, err := service.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{Namespace: namespace, Execution: e})
	if err != nil {
		return 0, ignoreNotFound(err)
	}
	for _, a := range now.GetPendingActivities() {
		if a.GetState() != enums.PENDING_ACTIVITY_STATE_STARTED || a.GetLastWorkerIdentity() != worker {
			continue
		}
		_, err := service.RespondActivityTaskFailedById(ctx, &workflowservice.RespondActivityTaskFailedByIdRequest{
			Namespace: namespace, WorkflowId: e.GetWorkflowId(), RunId: e.GetRunId(), ActivityId: a.GetActivityId(), Identity: worker, Failure: workerLost(),
		})
		if err := ignoreNotFound(err); err != nil {
			return n, fmt.Errorf("presence: fail an attempt: %w", err)
		}
		n++
	}
	return n, nil
}
