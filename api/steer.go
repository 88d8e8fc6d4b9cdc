package api

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
)

// steerThread serves POST /v1/threads/{thread}/messages: it steers the active run with a user
// message, which the next model call receives. It answers 202 with a commands.Steered when the
// run's workflow has accepted the message. The same message again has no effect (repeated).
//
// Important errors: 400 invalid_input, 409 not_active, 429 too_much_steering.
func (s *Server) steerThread(c *gin.Context) error {
	thread, err := access.Address(c.Request.Context(), request.Segment(c, "thread"))
	if err != nil {
		return err
	}
	var body struct {
		Message json.RawMessage `json:"message"`
	}
	if err := s.ReadJSON(c, &body); err != nil {
		return err
	}
	if err := s.access.Check(c.Request.Context(), thread, policy.RunThread); err != nil {
		return err
	}
	steered, err := s.commands.Steer(c.Request.Context(), thread, body.Message)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusAccepted, steered)
}
