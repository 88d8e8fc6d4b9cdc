package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// pauseThread and resumeThread are for operators. The active run stops before its next step, and
// continues. Activities in flight are not stopped, and no limit counts the time.
func (s *Server) pauseThread(c *gin.Context)  { s.turn(c, runs.UpdatePause, true) }
func (s *Server) resumeThread(c *gin.Context) { s.turn(c, runs.UpdateResume, false) }

// listPatience bounds how long a pause waits for the first record of a run that has just been
// started. A run that is paused before its first step does not begin before it is resumed.
const listPatience = 2 * time.Second

// turn pauses or resumes the run, and lists that in the index of threads. If only the latter fails
// the answer is 503: the same request does both again.
func (s *Server) turn(c *gin.Context, update string, paused bool) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	thread, err := request.ThreadOf(c)
	var taken runs.Paused
	if err == nil {
		err = s.commands.Update(ctx, thread, update, runs.Pause{}, &taken)
	}
	if err == nil {
		listing, end := context.WithTimeout(ctx, listPatience)
		defer end()
		err = s.Log.ListPaused(listing, stream.Run{Thread: thread, ID: taken.RunID}, paused)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
