package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"

	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/tasktoken"

	"github.com/perdure/perdure/runs"
)

// orphanParallelism bounds the concurrent requests of FailOrphans. The database executes one write
// at a time, so more requests would only wait there.
const orphanParallelism = 8

// Orphan is a task that was under way when the earlier server of the directory ended: an attempt of
// an activity, or a workflow task.
type Orphan struct {
	Namespace  string
	WorkflowID string
	RunID      string
	// ActivityID is "" for a workflow task.
	ActivityID string
	// Type is the activity type. Attempt counts from 1.
	Type    string
	Attempt int32
	// Worker is the Temporal identity of the worker that executed the attempt of an activity.
	Worker string

	// token is the task token. It identifies the attempt, so a later one cannot be failed by mistake.
	token []byte
}

// FailOrphans fails tasks whose worker died with the server, so that Temporal dispatches them again at
// once instead of after their timeouts. The failure of an activity is retryable, of type
// [runs.ErrorWorkerLost], with a retry delay of a millisecond instead of the policy's backoff. An
// activity without attempts left fails for good, as it would by timeout.
//
// FailOrphans returns the number of tasks that it has failed. A task that has ended otherwise (its
// workflow closed, its timeout came first, a new worker executes a later attempt) is not counted and
// no error, so new workers may already be running. A worker in another process may outlive the
// server: remove its tasks from the list, by [Orphan.Worker] or by workflow ID, or rely on the
// fencing of the activity.
//
// Errors are joined. Each names its task, and the other tasks are still failed.
func FailOrphans(ctx context.Context, c client.Client, orphans []Orphan) (n int, err error) {
	var failed atomic.Int64
	errs := make([]error, len(orphans))
	var g errgroup.Group
	g.SetLimit(orphanParallelism)
	for i, o := range orphans {
		g.Go(func() error {
			switch err := o.fail(ctx, c.WorkflowService()); {
			case err == nil:
				failed.Add(1)
			case !isNotFound(err):
				errs[i] = fmt.Errorf("fail %s of workflow %s: %w", o.task(), o.WorkflowID, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return int(failed.Load()), errors.Join(errs...)
}

// task returns what kind of task the orphan is, for errors.
func (o Orphan) task() string {
	if o.ActivityID == "" {
		return "the workflow task"
	}
	return fmt.Sprintf("activity %q", o.ActivityID)
}

// workerEnded is the message of the failures.
const workerEnded = "the worker process ended while it executed the task"

// fail reports the failure of the task to Temporal.
func (o Orphan) fail(ctx context.Context, s workflowservice.WorkflowServiceClient) error {
	if o.ActivityID == "" {
		_, err := s.RespondWorkflowTaskFailed(ctx, &workflowservice.RespondWorkflowTaskFailedRequest{
			Namespace: o.Namespace, TaskToken: o.token,
			Cause:   enums.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
			Failure: &failurepb.Failure{Message: workerEnded},
		})
		return err
	}
	_, err := s.RespondActivityTaskFailed(ctx, &workflowservice.RespondActivityTaskFailedRequest{
		Namespace: o.Namespace,
		TaskToken: o.token,
		Identity:  o.Worker,
		Failure: &failurepb.Failure{
			Message: workerEnded,
			FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
					Type: runs.ErrorWorkerLost,
					// Zero would mean the policy's backoff.
					NextRetryDelay: durationpb.New(time.Millisecond),
				},
			},
		},
	})
	return err
}

// isNotFound reports whether Temporal does not know the attempt: it has ended.
func isNotFound(err error) bool {
	_, notFound := errors.AsType[*serviceerror.NotFound](err)
	return notFound
}

// readOrphans reads the tables of pending activities and of executions. Temporal writes them in the
// transaction that starts a task. Visibility would be incomplete: its records are written later, and
// those of the last workflows before a kill are missing. The tables keep closed workflows until
// their retention ends, hence the join with running executions.
func readOrphans(ctx context.Context, db *sql.DB, namespace string) ([]Orphan, error) {
	activities, err := readRows(ctx, db, `
		SELECT a.namespace_id, a.workflow_id, a.run_id, a.data, a.data_encoding
		FROM activity_info_maps a
		JOIN namespaces n ON n.id = a.namespace_id
		JOIN current_executions e USING (shard_id, namespace_id, workflow_id, run_id)
		WHERE n.name = ? AND e.status = 1 /* running */`, namespace, orphanedActivity)
	if err != nil {
		return nil, err
	}
	tasks, err := readRows(ctx, db, `
		SELECT x.namespace_id, x.workflow_id, x.run_id, x.data, x.data_encoding
		FROM executions x
		JOIN namespaces n ON n.id = x.namespace_id
		JOIN current_executions e USING (shard_id, namespace_id, workflow_id, run_id)
		WHERE n.name = ? AND e.status = 1 /* running */`, namespace, orphanedWorkflowTask)
	return append(activities, tasks...), err
}

// storedRow is a row with an execution and data that belong to it.
type storedRow struct {
	namespaceID, runID primitives.UUID
	workflowID         string
	blob               *commonpb.DataBlob
}

// readRows returns the orphans in the rows of a query over a namespace. orphaned returns nil for a row
// without one.
func readRows(ctx context.Context, db *sql.DB, query, namespace string, orphaned func(storedRow) (*Orphan, error)) ([]Orphan, error) {
	rows, err := db.QueryContext(ctx, query, namespace)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var orphans []Orphan
	for rows.Next() {
		var r storedRow
		var encoding string
		var data []byte
		if err := rows.Scan(&r.namespaceID, &r.workflowID, &r.runID, &data, &encoding); err != nil {
			return nil, err
		}
		r.blob = persistence.NewDataBlob(data, encoding)
		o, err := orphaned(r)
		if err != nil {
			return nil, fmt.Errorf("task of workflow %s: %w", r.workflowID, err)
		}
		if o != nil {
			o.Namespace, o.WorkflowID, o.RunID = namespace, r.workflowID, r.runID.String()
			orphans = append(orphans, *o)
		}
	}
	return orphans, rows.Err()
}

// orphanedActivity returns the attempt of a pending activity; nil = it waits for its next attempt.
func orphanedActivity(r storedRow) (*Orphan, error) {
	a, err := decodeActivity(r.blob)
	if err != nil || a.StartedEventId == 0 {
		return nil, err
	}
	token, err := tasktoken.NewSerializer().Serialize(tasktoken.NewActivityTaskToken(
		r.namespaceID.String(), r.workflowID, r.runID.String(), a.ScheduledEventId, a.ActivityId, a.ActivityType.GetName(),
		a.Attempt, nil, a.Version, a.StartVersion, nil, a.Stamp))
	return &Orphan{ActivityID: a.ActivityId, Type: a.ActivityType.GetName(), Attempt: a.Attempt, Worker: a.StartedIdentity, token: token}, err
}

// orphanedWorkflowTask returns the workflow task of an execution that has started; nil = there is
// none.
func orphanedWorkflowTask(r storedRow) (*Orphan, error) {
	e, err := serialization.NewSerializer().WorkflowExecutionInfoFromBlob(r.blob)
	if err != nil || e.WorkflowTaskStartedEventId <= 0 {
		return nil, err
	}
	token, err := tasktoken.NewSerializer().Serialize(tasktoken.NewWorkflowTaskToken(
		r.namespaceID.String(), r.workflowID, r.runID.String(), e.WorkflowTaskScheduledEventId, e.WorkflowTaskStartedEventId,
		e.WorkflowTaskStartedTime, e.WorkflowTaskAttempt, nil, e.WorkflowTaskVersion))
	return &Orphan{Attempt: e.WorkflowTaskAttempt, token: token}, err
}

// decodeActivity decodes Temporal's record of an activity.
func decodeActivity(blob *commonpb.DataBlob) (*persistencespb.ActivityInfo, error) {
	return serialization.NewSerializer().ActivityInfoFromBlob(blob)
}
