package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// pauseThread and resumeThread serve POST /v1/threads/{thread}/pause and /resume, for operators. A
// paused run stops before its next step. Activities in flight finish, and no limit counts the time
// of the pause. They answer 204 when the workflow has accepted the request, and 409 not_active
// without an active run.
func (s *Server) pauseThread(c *gin.Context) error  { return s.setPaused(c, true) }
func (s *Server) resumeThread(c *gin.Context) error { return s.setPaused(c, false) }

// pauseIndexTimeout bounds how long a pause waits for the first record of a run that has just
// started. A run that is paused before its first step writes that record only after it is resumed,
// so waiting longer would be in vain.
const pauseIndexTimeout = 2 * time.Second

// setPaused sends the update that pauses or resumes the active run, and then changes the run's
// status in the index of threads. The two are not atomic. If only the index fails, the answer is a
// 503, and the same request does both again.
func (s *Server) setPaused(c *gin.Context, paused bool) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	thread, err := s.access.ThreadOf(c, policy.RunThread)
	if err != nil {
		return err
	}
	update := runs.UpdateResume
	if paused {
		update = runs.UpdatePause
	}
	var result runs.PauseResult
	if err := s.commands.Update(ctx, thread, update, runs.PauseRequest{}, &result); err != nil {
		return err
	}
	indexCtx, cancelIndex := context.WithTimeout(ctx, pauseIndexTimeout)
	defer cancelIndex()
	if err := s.Log.SetPaused(indexCtx, stream.Run{Thread: thread, ID: result.RunID}, paused); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
