package threadroutes

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/stuck"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
)

// maxStuckPage bounds the threads about which a page of stuck threads asks Temporal.
const maxStuckPage = 100

// stuckPage is a page of stuck threads.
type stuckPage struct {
	Items      []stuckThread `json:"items"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// stuckThread is a thread in a stuckPage.
type stuckThread struct {
	threads.Thread

	Stuck *stuck.Stuck `json:"stuck"`
}

// listStuck answers with those of the next limit active threads whose run is stuck. So a page may
// have fewer items, and still a next page. Paused runs are not stuck.
func (r *Routes) listStuck(c *gin.Context, filter threads.Filter, limit int) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	if filter.Status != "" && filter.Status != stream.StatusRunning {
		return problem.InvalidParameter("status", "stuck threads are running: leave status out")
	}
	filter.Status = stream.StatusRunning
	// A run that has just begun cannot be stuck.
	if latest := time.Now().Add(-stuck.MinWait); filter.Before.IsZero() || filter.Before.After(latest) {
		filter.Before = latest
	}
	tenant := request.Caller(ctx).Tenant
	active, err := r.index.List(tenant, filter, c.Query("cursor"), min(limit, maxStuckPage))
	if err != nil {
		return err
	}
	ids := make([]stream.Thread, len(active.Items))
	for i, item := range active.Items {
		ids[i] = stream.Thread{Tenant: tenant, ID: item.ThreadID}
	}
	why, err := r.stuck.Check(ctx, ids...)
	if err != nil {
		return err
	}
	page := stuckPage{Items: []stuckThread{}, NextCursor: active.NextCursor}
	for i, item := range active.Items {
		if why[i] != nil {
			page.Items = append(page.Items, stuckThread{item, why[i]})
		}
	}
	return request.WriteJSON(c, http.StatusOK, page)
}

// stuckRun returns why the active run of a thread, or the run of its last input, is stuck; nil = it
// is not, or Temporal does not answer within statusTimeout. It asks Temporal only if the thread has
// had no record for stuck.MinWait.
func (r *Routes) stuckRun(ctx context.Context, thread stream.Thread, status stream.Status) *stuck.Stuck {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if status == stream.StatusPaused {
		return nil
	}
	last, err := r.finder.Log.Last(ctx, r.finder.Log.ThreadSubject(thread)+".>")
	if err != nil || last == nil || time.Since(last.Time) < stuck.MinWait {
		return nil
	}
	// A proposal is an input whose run has not begun, unless a run is active.
	if status != stream.StatusRunning && last.Kind != stream.KindProposal {
		return nil
	}
	why, err := r.stuck.Check(ctx, thread)
	if err != nil {
		return nil
	}
	return why[0]
}
