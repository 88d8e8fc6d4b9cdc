package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/stream"
)

// deleteThread takes a thread away for good: what runs is stopped, then all is removed that is known of it.
// Its cursors are gone; its id may be used again. What is sent to the thread meanwhile may be lost with it.
// A delete that broke off is repeated.
func (s *Server) deleteThread(c *gin.Context) {
	thread, now, err := s.threadAsItIs(c)
	if err == nil {
		ctx, end := context.WithTimeout(c.Request.Context(), purgePatience)
		defer end()
		err = s.purge(ctx, thread, now)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

// purgePatience bounds a delete: a long thread has many blobs.
const purgePatience = time.Minute

func (s *Server) purge(ctx context.Context, thread stream.Thread, now *stream.Reduction) error {
	if err := s.stop(ctx, thread, now); err != nil {
		return err
	}
	if s.Inbox != nil {
		if err := s.Inbox.Store.Purge(ctx, thread); err != nil {
			return err
		}
	}
	return s.Log.Purge(ctx, thread)
}

// stopPatience is how long a workflow may take to end what it does in good order.
const stopPatience = 5 * time.Second

// stop ends a thread's workflow. One that runs is cancelled, so that its readers see the run end and nobody
// works on for it. One that does not end, since other runs wait in it or no worker is there, is terminated.
func (s *Server) stop(ctx context.Context, thread stream.Thread, now *stream.Reduction) error {
	if now.Status() == stream.StatusRunning {
		if err := s.cancel(ctx, stream.Run{Thread: thread, ID: now.RunID}, "the thread is deleted"); err != nil {
			return err
		}
	}
	id := workflowID(thread)
	err := s.Temporal.CancelWorkflow(ctx, id, "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: cancel workflow: %w", err)
	}
	closing, end := context.WithTimeout(ctx, stopPatience)
	_ = s.Temporal.GetWorkflow(closing, id, "").Get(closing, nil) // how it closes is its own matter
	end()
	described, err := s.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("api: describe workflow: %w", err)
	}
	if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil
	}
	if err := s.Temporal.TerminateWorkflow(ctx, id, "", "the thread is deleted"); err != nil && !isNotFound(err) {
		return fmt.Errorf("api: terminate workflow: %w", err)
	}
	return nil
}

func isNotFound(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone)
}
