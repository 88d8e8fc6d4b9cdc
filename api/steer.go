package api

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/request"
)

// steerThread tells the active run of a thread a message, which the next model call gets. It
// answers when the run has taken the message. The same message again is taken once.
func (s *Server) steerThread(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	var body struct {
		Message json.RawMessage `json:"message"`
	}
	if err := s.ReadJSON(c, &body); err != nil {
		s.Refuse(c, err)
		return
	}
	answer, err := s.commands.Steer(c.Request.Context(), thread, body.Message)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusAccepted, answer)
}
