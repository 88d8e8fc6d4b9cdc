package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/stream"
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
	err := json.NewDecoder(http.MaxBytesReader(c.Writer, c.Request.Body, s.MaxBody)).Decode(&body)
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return "", err
	case err != nil && !errors.Is(err, io.EOF): // no body is fine
		return "", badRequest("invalid_input", "", "must be a JSON object like {\"reason\": \"…\"}, or nothing")
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
		err := s.Temporal.CancelWorkflow(ctx, workflowID(run.Thread), begun.Execution)
		var gone *serviceerror.NotFound
		if err != nil && !errors.As(err, &gone) {
			return fmt.Errorf("api: cancel: %w", err)
		}
	}
	return s.Log.AnnounceCancel(run)
}
