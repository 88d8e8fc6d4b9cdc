package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/workflows"
)

// pauseThread and resumeThread are an operator's: the thread's active run stops before its next step,
// and goes on. What is under way is not touched, and the time counts for no limit.
func (s *Server) pauseThread(c *gin.Context)  { s.turn(c, workflows.UpdatePause) }
func (s *Server) resumeThread(c *gin.Context) { s.turn(c, workflows.UpdateResume) }

func (s *Server) turn(c *gin.Context, update string) {
	thread, err := threadOf(c)
	if err == nil {
		err = s.update(c.Request.Context(), thread, update, workflows.Pause{}, nil)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
