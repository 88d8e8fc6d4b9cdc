package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
)

// cancelRun cancels a run, which then keeps what it has said so far. It answers when the wish is
// durable; asking again, or for a run that is over, changes nothing.
func (s *Server) cancelRun(c *gin.Context) {
	run, err := request.RunOf(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	reason, err := s.readReason(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	if err := s.commands.Cancel(c.Request.Context(), run, reason); err != nil {
		s.Refuse(c, err)
		return
	}
	c.Status(http.StatusAccepted)
}

func (s *Server) readReason(c *gin.Context) (string, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := s.ReadJSON(c, &body); err != nil { // no body is fine
		return "", err
	}
	return body.Reason, commands.CheckReason(body.Reason)
}

// abandon cancels a run whose client had asked for that and has gone away: ctx, the client's, has
// ended for another reason than that this node goes down, or that the client has to show new
// credentials.
func (s *Server) abandon(ctx context.Context, in *acceptedInput) {
	if !in.props.CancelOnDisconnect || ctx.Err() == nil || s.closed.Err() != nil || errors.Is(context.Cause(ctx), streams.ErrExpired) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.commands.Cancel(ctx, in.run, "the client has disconnected"); err != nil {
		s.logger.WarnContext(ctx, "a run that its client left could not be cancelled", "error", err)
	}
}
