package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// cancelRun cancels a run, which then keeps what it has said so far. It answers when the wish is
// durable; asking again, or for a run that is over, changes nothing.
func (s *Server) cancelRun(c *gin.Context) {
	run, err := runOf(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	reason, err := s.readReason(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	if err := s.cancel(c.Request.Context(), run, reason); err != nil {
		s.refuse(c, err)
		return
	}
	c.Status(http.StatusAccepted)
}

const maxReason = 1000

func (s *Server) readReason(c *gin.Context) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := s.readJSON(c, &body); err != nil { // no body is fine
		return "", err
	}
	return body.Reason, checkReason(body.Reason)
}

func checkReason(reason string) error {
	if len(reason) > maxReason {
		return badRequest("invalid_input", "/reason", "may have at most 1000 bytes")
	}
	return nil
}

// cancel goes the three ways of a cancel in this order: the record, which nothing loses; Temporal,
// which decides; the announcement, which is fast.
func (s *Server) cancel(ctx context.Context, run stream.Run, reason string) error {
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	run, err := s.latest(ctx, run)
	if err != nil {
		return err
	}
	known, err := s.Log.Known(ctx, run)
	if err != nil {
		return err
	}
	if !known {
		return problem(http.StatusNotFound, "unknown_run", "there is no such run")
	}
	ended, err := s.Log.Ended(ctx, run)
	if err != nil || ended {
		return err
	}
	if _, err := s.Log.RequestCancel(ctx, run, reason); err != nil {
		return err
	}
	begun, err := s.Log.Begun(ctx, run)
	if err != nil {
		return err
	}
	if begun != nil { // else the run's first activity finds the record
		if err := s.signalCancel(ctx, run); err != nil {
			return err
		}
	}
	return s.Log.AnnounceCancel(run)
}

// signalCancel tells the thread's workflow. It is a signal that names the run, and not Temporal's own
// cancellation: that names an execution, and a run may have continued in another one, or have made
// way for another run.
func (s *Server) signalCancel(ctx context.Context, run stream.Run) error {
	err := s.Temporal.SignalWorkflow(ctx, workflowID(run.Thread), "", workflows.SignalCancel, workflows.Cancel{RunID: run.ID})
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return fmt.Errorf("api: cancel: %w", err)
	}
	return nil
}

// tellCancelled goes the first and the last way for a run that its workflow has cancelled already.
func (s *Server) tellCancelled(ctx context.Context, run stream.Run, reason string) error {
	if _, err := s.Log.RequestCancel(ctx, run, reason); err != nil {
		return err
	}
	return s.Log.AnnounceCancel(run)
}

// abandon cancels a run whose client had asked for that and has gone away: ctx, the client's, has ended
// for another reason than that this node goes down, or that the client has to show new credentials.
func (s *Server) abandon(ctx context.Context, o *offer) {
	if !o.props.CancelOnDisconnect || ctx.Err() == nil || s.closed.Err() != nil || errors.Is(context.Cause(ctx), errExpired) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.cancel(ctx, o.run, "the client has disconnected"); err != nil {
		s.logger.WarnContext(ctx, "a run that its client left could not be cancelled", "error", err)
	}
}
