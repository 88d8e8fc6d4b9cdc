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

// deleteThread deletes a thread: it stops what runs, and removes everything that is stored about
// it. Cursors of the thread become invalid, and its ID may be used again. Inputs that arrive during
// the deletion may be deleted too. An incomplete deletion is repeated.
func (s *Routes) deleteThread(c *gin.Context) {
	thread, now, err := s.threadAsItIs(c)
	if err == nil {
		ctx, end := context.WithTimeout(c.Request.Context(), purgePatience)
		defer end()
		err = s.purge(ctx, thread, now)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

// purgePatience bounds a deletion: a long thread has many blobs.
const purgePatience = time.Minute

func (s *Routes) purge(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot) error {
	if err := s.stop(ctx, thread, now); err != nil {
		return err
	}
	if s.inbox != nil {
		if err := s.inbox.Purge(ctx, thread); err != nil {
			return err
		}
	}
	return s.find.Snapshots.Purge(ctx, thread)
}

// stopPatience is how long a workflow may take to become idle, and then to close; restCheck is the
// pause between two checks.
const (
	stopPatience = 5 * time.Second
	restCheck    = 50 * time.Millisecond
)

// stop ends a thread's workflow. It waits for active activities, because Temporal forgets
// activities that outlive their workflow, and they would write after the purge. A workflow that
// does not close, because there is no worker, is terminated.
func (s *Routes) stop(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot) error {
	id := dispatch.WorkflowID(thread)
	if err := s.stopRuns(ctx, thread, now); err != nil {
		return err
	}
	err := s.watcher.Temporal.CancelWorkflow(ctx, id, "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: cancel workflow: %w", err)
	}
	closing, end := context.WithTimeout(ctx, stopPatience)
	_ = s.watcher.Temporal.GetWorkflow(closing, id, "").Get(closing, nil) // only that it closes matters
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

// stopRuns cancels the active run, so that its readers see it end, and the queued runs. Then it
// waits for some time until the workflow is idle or closed.
func (s *Routes) stopRuns(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot) error {
	resting, end := context.WithTimeout(ctx, stopPatience)
	defer end()
	look := time.NewTicker(restCheck)
	defer look.Stop()
	cancelled := ""
	for {
		if now.Status() == stream.StatusRunning && now.RunID != cancelled {
			cancelled = now.RunID
			if err := s.commands.Cancel(ctx, stream.Run{Thread: thread, ID: cancelled}, "the thread is deleted"); err != nil {
				return err
			}
		}
		still, err := s.rests(ctx, thread)
		if still || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-resting.Done():
			return ctx.Err()
		}
		if now, err = s.find.Snapshots.Latest(ctx, thread, 0); err != nil {
			return err
		}
	}
}

// rests reports whether a thread's workflow is idle, or does not exist.
func (s *Routes) rests(ctx context.Context, thread stream.Thread) (bool, error) {
	d, err := s.watcher.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(thread), "")
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("api: describe workflow: %w", err)
	}
	works := len(d.GetPendingActivities())+len(d.GetPendingChildren()) > 0 || d.GetPendingWorkflowTask() != nil
	return !works || d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

func isNotFound(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone)
}
