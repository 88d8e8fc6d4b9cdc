package threadroutes

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// deleteThread serves DELETE /v1/threads/{thread}: it stops the active and the queued runs, and
// removes everything that is stored about the thread. It answers 204 when nothing is left, which
// takes up to a minute. Cursors of the thread become invalid, and its ID may be used again.
//
// A 503 means that the deletion may be incomplete; the same request continues it. An input that
// arrives during the deletion may be deleted too.
func (r *Routes) deleteThread(c *gin.Context) error {
	ctx := c.Request.Context()
	thread, snap, err := r.latestThread(c)
	if err == nil {
		err = r.access.Check(ctx, thread, policy.ManageThread)
	}
	wasInterrupted := errors.Is(err, stream.ErrUnfinishedPurge)
	if err != nil && !wasInterrupted {
		return err
	}
	if err := r.deletion.CheckHold(ctx, thread); err != nil {
		return err
	}
	if wasInterrupted {
		// The caller of the earlier deletion was allowed to delete the thread, so any caller may
		// remove the rest. The name of the owner may be destroyed with the key.
		err = r.deletion.Finish(ctx, thread)
	} else {
		err = r.deletion.Delete(ctx, thread, snap)
	}
	if err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
