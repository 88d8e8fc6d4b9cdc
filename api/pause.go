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

// pauseThread and resumeThread serve POST /v1/threads/{thread}/pause and /resume, for operators. A
// paused run stops before its next step. Activities in flight finish, and no limit counts the time
// of the pause. They answer 204 when the workflow has accepted the request, and 409 not_active
// without an active run.
func (s *Server) pauseThread(c *gin.Context)  { s.setPaused(c, runs.UpdatePause, true) }
func (s *Server) resumeThread(c *gin.Context) { s.setPaused(c, runs.UpdateResume, false) }

// listPatience bounds how long a pause waits for the first record of a run that has just started. A
// run that is paused before its first step writes that record only after it is resumed, so waiting
// longer would be in vain.
const listPatience = 2 * time.Second

// setPaused sends the update that pauses or resumes the active run, and then changes the run's
// status in the index of threads. The two are not atomic. If only the index fails, the answer is a
// 503, and the same request does both again.
func (s *Server) setPaused(c *gin.Context, update string, paused bool) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	thread, err := request.ThreadOf(c)
	var taken runs.PauseResult
	if err == nil {
		err = s.commands.Update(ctx, thread, update, runs.PauseRequest{}, &taken)
	}
	if err == nil {
		listing, end := context.WithTimeout(ctx, listPatience)
		defer end()
		err = s.Log.SetPaused(listing, stream.Run{Thread: thread, ID: taken.RunID}, paused)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
