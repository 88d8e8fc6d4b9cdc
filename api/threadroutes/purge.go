package threadroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// deleteThread serves DELETE /v1/threads/{thread}: it stops the active and the queued runs, and
// removes everything that is stored about the thread. It answers 204 when nothing is left, which
// takes up to a minute. Cursors of the thread become invalid, and its ID may be used again.
//
// A 503 means that the deletion may be incomplete; the same request continues it. An input that
// arrives during the deletion may be deleted too.
func (r *Routes) deleteThread(c *gin.Context) error {
	thread, snap, err := r.latestThread(c)
	if err == nil {
		err = r.access.Check(c.Request.Context(), thread, policy.ManageThread)
	}
	wasInterrupted := errors.Is(err, stream.ErrKeyDestroyed)
	if err != nil && !wasInterrupted {
		return err
	}
	if err := r.checkHold(c.Request.Context(), thread); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), purgeTimeout)
	defer cancel()
	if wasInterrupted {
		// An earlier deletion has destroyed the thread's key, and with it the name of the owner. Its
		// caller was allowed to delete the thread, so any caller may remove the rest.
		err = r.finder.Snapshots.Purge(ctx, thread)
	} else {
		err = r.purge(ctx, thread, snap)
	}
	if err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// checkHold refuses, with 409 legal_hold, the deletion of a thread that has a legal hold.
func (r *Routes) checkHold(ctx context.Context, thread stream.Thread) error {
	if r.holds == nil {
		return nil
	}
	hold, err := r.holds.On(ctx, thread)
	if hold == nil || err != nil {
		return err
	}
	return problem.New(http.StatusConflict, problem.CodeLegalHold, "the thread has a legal hold, or its tenant has one: it can be deleted when the hold is released")
}

// purgeTimeout bounds a deletion. It exceeds request.ResponseTimeout because a long thread has many
// blobs.
const purgeTimeout = time.Minute

// purge stops the workflow of a thread, and removes its interrupts from the inbox and then its
// records. The order matters: an active worker would write records after the purge, and the inbox
// finds its entries by the audit in the log.
func (r *Routes) purge(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	if err := r.stopWorkflow(ctx, thread, snap); err != nil {
		return err
	}
	if r.inbox != nil {
		if err := r.inbox.Purge(ctx, thread); err != nil {
			return err
		}
	}
	return r.finder.Snapshots.Purge(ctx, thread)
}

// stopTimeout is how long a workflow may take to become idle, and again to close. idlePollInterval
// is the pause between two checks.
const (
	stopTimeout      = 5 * time.Second
	idlePollInterval = 50 * time.Millisecond
)

// stopWorkflow ends a thread's workflow, and returns nil if there is none. It waits for active
// activities, because Temporal forgets activities that outlive their workflow, and they would write
// after the purge. A workflow that does not close in time, because no worker is available, is
// terminated.
func (r *Routes) stopWorkflow(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	id := dispatch.WorkflowID(thread)
	if err := r.stopRuns(ctx, thread, snap); err != nil {
		return err
	}
	// A workflow without an active run may wait for decisions, or be parked.
	err := r.watcher.Temporal.CancelWorkflow(ctx, id, "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: cancel workflow: %w", err)
	}
	closeCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	_ = r.watcher.Temporal.GetWorkflow(closeCtx, id, "").Get(closeCtx, nil) // only that it closes matters, not its result
	cancel()
	status, err := r.watcher.StatusOf(ctx, stream.Run{Thread: thread}, "")
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("api: describe workflow: %w", err)
	case status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return nil
	}
	if err := r.watcher.Temporal.TerminateWorkflow(ctx, id, "", "the thread is deleted"); err != nil && !isNotFound(err) {
		return fmt.Errorf("api: terminate workflow: %w", err)
	}
	return nil
}

// stopRuns cancels the active run, so that its readers see it end, and then each run that starts
// from the queue. It returns when the workflow is idle or closed, or after stopTimeout without an
// error: stopWorkflow then continues with stronger means.
func (r *Routes) stopRuns(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	stopCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	tick := time.NewTicker(idlePollInterval)
	defer tick.Stop()
	cancelled := ""
	for {
		// Each run is cancelled once. A queued run begins when the run before it ends, and is
		// cancelled then.
		if snap.Status() == stream.StatusRunning && snap.RunID != cancelled {
			cancelled = snap.RunID
			if err := r.commands.Cancel(ctx, stream.Run{Thread: thread, ID: cancelled}, "the thread is deleted"); err != nil {
				return err
			}
		}
		idle, err := r.isIdle(ctx, thread)
		if idle || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-stopCtx.Done():
			return ctx.Err()
		}
		if snap, err = r.finder.Snapshots.Latest(ctx, thread, 0); err != nil {
			return err
		}
	}
}

// isIdle reports whether a thread's workflow is idle: it has closed, does not exist, or has neither
// activities, child workflows nor a workflow task.
func (r *Routes) isIdle(ctx context.Context, thread stream.Thread) (bool, error) {
	d, err := r.watcher.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(thread), "")
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("api: describe workflow: %w", err)
	}
	// A workflow task may schedule further activities, so a pending one counts as work.
	hasWork := len(d.GetPendingActivities())+len(d.GetPendingChildren()) > 0 || d.GetPendingWorkflowTask() != nil
	return !hasWork || d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// isNotFound reports whether Temporal does not know the workflow.
func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}
