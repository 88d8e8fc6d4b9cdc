package devserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
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

// Orphan is an activity attempt that was running when the earlier server of the directory ended.
type Orphan struct {
	Namespace  string
	WorkflowID string
	RunID      string
	ActivityID string
	// Type is the activity type. Attempt counts from 1.
	Type    string
	Attempt int32
	// Worker is the Temporal identity of the worker that executed the attempt.
	Worker string

	// token is the attempt's task token. It identifies the attempt, so a later attempt of the same
	// activity cannot be failed by mistake.
	token []byte
}

// FailOrphans fails attempts whose worker died with the server, so that their next attempts start
// at once instead of after a heartbeat timeout. The failure is retryable, of type
// [runs.ErrorWorkerLost], with a retry delay of a millisecond instead of the policy's backoff. An
// activity without attempts left fails for good, as it would by timeout.
//
// FailOrphans returns the number of attempts that it has failed. An attempt that has ended
// otherwise (its workflow closed, its timeout came first, a new worker executes a later attempt) is
// not counted and no error, so new workers may already be running. A worker in another process may
// outlive the server: remove its attempts from the list, by [Orphan.Worker] or by workflow ID, or
// rely on the fencing of the activity.
//
// Errors are joined. Each names its activity, and the other attempts are still failed.
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
				errs[i] = fmt.Errorf("fail activity %s of workflow %s: %w", o.ActivityID, o.WorkflowID, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return int(failed.Load()), errors.Join(errs...)
}

// fail reports the failure of the attempt to Temporal.
func (o Orphan) fail(ctx context.Context, s workflowservice.WorkflowServiceClient) error {
	_, err := s.RespondActivityTaskFailed(ctx, &workflowservice.RespondActivityTaskFailedRequest{
		Namespace: o.Namespace,
		TaskToken: o.token,
		Identity:  o.Worker,
		Failure: &failurepb.Failure{
			Message: "the worker process ended while the activity ran",
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
	_, locked := errors.AsType[*serviceerror.NotFound](err)
	return locked
}

// readOrphans reads the table of pending activities. Temporal writes it in the transaction that
// starts an attempt. Visibility would be incomplete: its records are written later, and those of
// the last workflows before a kill are missing. The table keeps activities of closed workflows
// until their retention ends, hence the join with running executions.
func readOrphans(ctx context.Context, db *sql.DB, namespace string) ([]Orphan, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT a.namespace_id, a.workflow_id, a.run_id, a.data, a.data_encoding
		FROM activity_info_maps a
		JOIN namespaces n ON n.id = a.namespace_id
		JOIN current_executions e USING (shard_id, namespace_id, workflow_id, run_id)
		WHERE n.name = ? AND e.status = 1 /* running */`, namespace)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var orphans []Orphan
	for rows.Next() {
		o, started, err := scanOrphan(rows, namespace)
		if err != nil {
			return nil, err
		}
		if started {
			orphans = append(orphans, o)
		}
	}
	return orphans, rows.Err()
}

// scanOrphan decodes a row. started is false for an activity that waits for its next attempt.
func scanOrphan(rows *sql.Rows, namespace string) (o Orphan, started bool, err error) {
	var namespaceID, runID primitives.UUID
	var workflowID, encoding string
	var data []byte
	if err := rows.Scan(&namespaceID, &workflowID, &runID, &data, &encoding); err != nil {
		return Orphan{}, false, err
	}
	a, err := decodeActivity(persistence.NewDataBlob(data, encoding))
	if err != nil {
		return Orphan{}, false, fmt.Errorf("activity of workflow %s: %w", workflowID, err)
	}
	token, err := tasktoken.NewSerializer().Serialize(tasktoken.NewActivityTaskToken(
		namespaceID.String(), workflowID, runID.String(), a.ScheduledEventId, a.ActivityId, a.ActivityType.GetName(),
		a.Attempt, nil, a.Version, a.StartVersion, nil, a.Stamp))
	return Orphan{
		Namespace:  namespace,
		WorkflowID: workflowID,
		RunID:      runID.String(),
		ActivityID: a.ActivityId,
		Type:       a.ActivityType.GetName(),
		Attempt:    a.Attempt,
		Worker:     a.StartedIdentity,
		token:      token,
	}, a.StartedEventId != 0, err
}

// decodeActivity decodes Temporal's record of an activity.
func decodeActivity(blob *commonpb.DataBlob) (*persistencespb.ActivityInfo, error) {
	return serialization.NewSerializer().ActivityInfoFromBlob(blob)
}
