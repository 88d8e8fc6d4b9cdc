package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/auth/policy"
)

// cancelRun serves POST /v1/threads/{thread}/runs/{run}/cancel. It answers 202 when the request to
// cancel is durable; the run ends soon after, and keeps what it has written. A second cancel, or a
// cancel of a run that has ended, has no effect and gets 202 too. An unknown run is a 404.
func (s *Server) cancelRun(c *gin.Context) error {
	run, err := access.AddressRun(c.Request.Context(), request.Segment(c, "thread"), request.Segment(c, "run"))
	if err != nil {
		return err
	}
	reason, err := s.readReason(c)
	if err != nil {
		return err
	}
	if err := s.access.Check(c.Request.Context(), run.Thread, policy.RunThread); err != nil {
		return err
	}
	if err := s.commands.Cancel(c.Request.Context(), run, reason); err != nil {
		return err
	}
	c.Status(http.StatusAccepted)
	return nil
}

// readReason reads the body of a cancel, which may be missing, and checks the length of its reason.
// It returns "" without a reason.
func (s *Server) readReason(c *gin.Context) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := s.ReadJSON(c, &body); err != nil { // ReadJSON accepts an empty body
		return "", err
	}
	return body.Reason, commands.CheckReason(body.Reason)
}

// cancelIfDisconnected cancels the run of an input with cancelOnDisconnect whose client has
// disconnected. ctx is the client's. cancelIfDisconnected does nothing if ctx has not ended, if the
// process is shutting down, or if the client's credentials have expired: in the latter two cases
// the client reconnects and expects the run. A failure is logged only, since no client waits.
func (s *Server) cancelIfDisconnected(ctx context.Context, in *preparedInput) {
	if !in.props.CancelOnDisconnect || ctx.Err() == nil || s.closed.Err() != nil || errors.Is(context.Cause(ctx), streams.ErrExpired) {
		return
	}
	// The client's context has ended. Cancel sets a timeout of its own.
	ctx = context.WithoutCancel(ctx)
	if err := s.commands.Cancel(ctx, in.run, "the client has disconnected"); err != nil {
		s.logger.WarnContext(ctx, "the run of a disconnected client could not be cancelled", "error", err)
	}
}
