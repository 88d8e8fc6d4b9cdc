package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
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
	if !s.streams.take() {
		s.refuse(c, errFull())
		return
	}
	defer s.streams.leave()
	o, err := s.offer(c.Request.Context(), agent, input)
	if err != nil {
		s.refuse(c, err)
		return
	}
	defer o.view.Close()
	c.Request = c.Request.WithContext(ofRun(c.Request.Context(), o.run, agent.Name))
	ctx, cancel := context.WithTimeout(c.Request.Context(), patience)
	defer cancel()
	err = s.awaitCarriedOut(ctx, o.run.Thread, c.Query("waitFor"))
	if err == nil {
		err = s.place(ctx, o)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	if o.steered != nil {
		c.JSON(http.StatusAccepted, o.steered)
		return
	}
	s.show(c, o.view, nil)
	s.abandon(c.Request.Context(), o)
}

// readInput reads and checks the body.
func (s *Server) readInput(c *gin.Context) (*agui.RunAgentInput, error) {
	body, err := s.readBody(c)
	if err != nil {
		return nil, err
	}
	return decodeInput(body)
}

// decodeInput checks an input, whatever transport it came by.
func decodeInput(body []byte) (*agui.RunAgentInput, error) {
	input, err := agui.DecodeInput(body)
	if err != nil {
		return nil, err
	}
	if err := checkInputIDs(input); err != nil {
		return nil, err
	}
	if major, _, ok := agui.ParseVersion(input.ProtocolVersion); ok && major != 1 {
		return nil, badRequest("unsupported_protocol_version", "/protocolVersion", fmt.Sprintf("this server speaks AG-UI %s", agui.Version))
	}
	return input, nil
}
