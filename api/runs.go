package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// startRun is the AG-UI endpoint: POST RunAgentInput, answered with the run's events. The same input
// again shows the same run.
func (s *Server) startRun(c *gin.Context) {
	agent, err := s.Catalog.Current(segment(c, "agent"))
	if err != nil {
		s.refuse(c, err)
		return
	}
	input, err := s.readInput(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	o, err := s.offer(agent, input)
	if err != nil {
		s.refuse(c, err)
		return
	}
	defer o.view.Close()
	ctx, cancel := context.WithTimeout(c.Request.Context(), patience)
	defer cancel()
	if err := s.place(ctx, o); err != nil {
		s.refuse(c, err)
		return
	}
	s.show(c, o.run, o.view, nil)
	s.abandon(c.Request.Context(), o)
}

// readInput reads and checks the body.
func (s *Server) readInput(c *gin.Context) (*agui.RunAgentInput, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, s.MaxBody))
	if err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return nil, err
		}
		return nil, badRequest("invalid_input", "", "the body could not be read")
	}
	return decodeInput(body)
}

// decodeInput checks an input, whatever transport it came by.
func decodeInput(body []byte) (*agui.RunAgentInput, error) {
	input, err := agui.DecodeInput(body)
	if err != nil {
		return nil, err
	}
	if err := checkIDs(stream.Run{Thread: stream.Thread{ID: input.ThreadID}, ID: input.RunID}); err != nil {
		return nil, err
	}
	if major, _, ok := agui.ParseVersion(input.ProtocolVersion); ok && major != 1 {
		return nil, badRequest("unsupported_protocol_version", "/protocolVersion", fmt.Sprintf("this server speaks AG-UI %s", agui.Version))
	}
	return input, nil
}

// runEvents shows a run again: behind a cursor, or from its start.
func (s *Server) runEvents(c *gin.Context) {
	run, err := runOf(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	options, err := s.viewOptions(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	view := s.Follower.View(run, options)
	defer view.Close()
	frames, err := s.look(c.Request.Context(), run, view)
	switch {
	case errors.Is(err, io.EOF):
		c.Status(http.StatusNoContent) // tells an EventSource to stop
	case err != nil:
		s.refuse(c, err)
	default:
		s.show(c, run, view, frames)
	}
}

// look begins a view of a run that must be known, and returns the frames that are at hand, or io.EOF
// if none will come. ctx must last as long as the view.
func (s *Server) look(ctx context.Context, run stream.Run, view *stream.View) ([]stream.Frame, error) {
	known, err := s.Log.Known(ctx, run)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, problem(http.StatusNotFound, "unknown_run", "there is no such run")
	}
	return view.Next(ctx, s.Heartbeat/100)
}

func (s *Server) viewOptions(c *gin.Context) (stream.ViewOptions, error) {
	after := c.GetHeader("Last-Event-ID")
	if after == "" {
		after = c.Query("after")
	}
	var version *string
	if v, ok := c.GetQuery("protocolVersion"); ok {
		version = &v
	} else if after == "" && wantsBinary(c.Request) {
		current := agui.Version // the only generation that has this wire
		version = &current
	}
	return s.viewFrom(after, version)
}

// viewFrom makes the options of a view from what a client says, on whatever transport: a cursor or
// "", a version or nil.
func (s *Server) viewFrom(after string, version *string) (stream.ViewOptions, error) {
	var o stream.ViewOptions
	if after != "" {
		cursor, err := s.Log.ParseCursor(after)
		if err != nil {
			return o, err
		}
		o.After = &cursor
	}
	if version != nil {
		o.Profile = stream.ProfileOf(*version)
	}
	return o, nil
}
