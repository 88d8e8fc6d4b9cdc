package threadroutes

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/stream/snapshot"
)

// shownRun is a run with its result.
type shownRun struct {
	runItem

	Result json.RawMessage `json:"result,omitempty"`
}

// showRun serves GET /v1/threads/{thread}/runs/{run}: the last segment of a run, with its result.
// Errors: 404 unknown_run, also for a run that has not begun.
func (r *Routes) showRun(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	run, err := access.AddressRun(ctx, request.Segment(c, "thread"), request.Segment(c, "run"))
	if err != nil {
		return err
	}
	if run, err = r.readableRun(ctx, run); err != nil {
		return err
	}
	_, snap, err := r.latestThread(c)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(snap.Runs, func(n snapshot.RunNote) bool { return n.ID == run.ID })
	if i < 0 {
		return problem.NoRun(run)
	}
	shown := shownRun{runItem: runItemOf(snap.Runs[i])}
	end, err := r.finder.Log.TerminalRecord(ctx, run)
	if err != nil {
		return err
	}
	if end != nil {
		ending, err := end.RunEnding(ctx)
		if err != nil {
			return err
		}
		shown.Result = ending.Result
	}
	return request.WriteJSON(c, http.StatusOK, shown)
}
