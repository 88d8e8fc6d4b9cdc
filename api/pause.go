package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// pauseThread and resumeThread are an operator's: the thread's active run stops before its next step,
// and goes on. What is under way is not touched, and the time counts for no limit.
func (s *Server) pauseThread(c *gin.Context)  { s.turn(c, workflows.UpdatePause) }
func (s *Server) resumeThread(c *gin.Context) { s.turn(c, workflows.UpdateResume) }

func (s *Server) turn(c *gin.Context, update string) {
	thread := stream.Thread{Tenant: tenantDefault, ID: segment(c, "thread")}
	if err := checkIDs(stream.Run{Thread: thread, ID: "-"}); err != nil {
		s.refuse(c, err)
		return
	}
	if err := s.updateThread(c.Request.Context(), thread, update); err != nil {
		s.refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}

func (s *Server) updateThread(ctx context.Context, thread stream.Thread, update string) error {
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	handle, err := s.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID(thread), UpdateName: update, Args: []any{workflows.Pause{}},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	var app *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone), errors.As(err, &app):
		return problem(http.StatusConflict, "not_active", "no run of this thread is active")
	case err != nil:
		return fmt.Errorf("api: %s: %w", update, err)
	}
	return nil
}
