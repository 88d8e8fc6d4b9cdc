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
func (s *Routes) deleteThread(c *gin.Context) {
	thread, snap, err := s.latestThread(c)
	if err == nil {
		ctx, end := context.WithTimeout(c.Request.Context(), purgePatience)
		defer end()
		err = s.purge(ctx, thread, snap)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

// purgePatience bounds a deletion. It exceeds request.Patience because a long thread has many
// blobs.
const purgePatience = time.Minute

// purge stops the workflow of a thread, and removes its interrupts from the inbox and then its
// records. The order matters: an active worker would write records after the purge, and the inbox
// finds its entries by the audit in the log.
func (s *Routes) purge(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	if err := s.stop(ctx, thread, snap); err != nil {
		return err
	}
	if s.inbox != nil {
		if err := s.inbox.Purge(ctx, thread); err != nil {
			return err
		}
	}
	return s.find.Snapshots.Purge(ctx, thread)
}

// stopPatience is how long a workflow may take to become idle, and again to close. restCheck is the
// pause between two checks.
const (
	stopPatience = 5 * time.Second
	restCheck    = 50 * time.Millisecond
)

// stop ends a thread's workflow, and returns nil if there is none. It waits for active activities,
// because Temporal forgets activities that outlive their workflow, and they would write after the
// purge. A workflow that does not close in time, because no worker is available, is terminated.
func (s *Routes) stop(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	id := dispatch.WorkflowID(thread)
	if err := s.stopRuns(ctx, thread, snap); err != nil {
		return err
	}
	// A workflow without an active run may idle wait for decisions, or be parked.
	err := s.watcher.Temporal.CancelWorkflow(ctx, id, "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: cancel workflow: %w", err)
	}
	closing, end := context.WithTimeout(ctx, stopPatience)
	_ = s.watcher.Temporal.GetWorkflow(closing, id, "").Get(closing, nil) // only that it closes matters, not its result
	end()
	status, err := s.watcher.StatusOf(ctx, stream.Run{Thread: thread}, "")
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("api: describe workflow: %w", err)
	case status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return nil
	}
	if err := s.watcher.Temporal.TerminateWorkflow(ctx, id, "", "the thread is deleted"); err != nil && !isNotFound(err) {
		return fmt.Errorf("api: terminate workflow: %w", err)
	}
	return nil
}

// stopRuns cancels the active run, so that its readers see it end, and then each run that starts
// from the queue. It returns when the workflow is idle or closed, or after stopPatience without an
// error: stop then continues with stronger means.
func (s *Routes) stopRuns(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	stopping, end := context.WithTimeout(ctx, stopPatience)
	defer end()
	tick := time.NewTicker(restCheck)
	defer tick.Stop()
	cancelled := ""
	for {
		// Each run is cancelled once. A queued run begins when the run before it ends, and is
		// cancelled then.
		if snap.Status() == stream.StatusRunning && snap.RunID != cancelled {
			cancelled = snap.RunID
			if err := s.commands.Cancel(ctx, stream.Run{Thread: thread, ID: cancelled}, "the thread is deleted"); err != nil {
				return err
			}
		}
		idle, err := s.isIdle(ctx, thread)
		if idle || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-stopping.Done():
			return ctx.Err()
		}
		if snap, err = s.find.Snapshots.Latest(ctx, thread, 0); err != nil {
			return err
		}
	}
}

// isIdle reports whether a thread's workflow is idle: it has closed, does not exist, or has neither
// activities, child workflows nor a workflow task.
func (s *Routes) isIdle(ctx context.Context, thread stream.Thread) (bool, error) {
	d, err := s.watcher.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(thread), "")
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("api: describe workflow: %w", err)
	}
	// A workflow task may schedule further activities, so a pending one counts as work.
	works := len(d.GetPendingActivities())+len(d.GetPendingChildren()) > 0 || d.GetPendingWorkflowTask() != nil
	return !works || d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// isNotFound reports whether Temporal does not know the workflow.
func isNotFound(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone)
}
