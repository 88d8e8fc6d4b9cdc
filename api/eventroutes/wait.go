package eventroutes

import (
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/stream"
)

// wait is a wait in the answer of GET /v1/waits.
type wait struct {
	ID       string          `json:"id"`
	ThreadID string          `json:"threadId"`
	RunID    string          `json:"runId"`
	Agent    string          `json:"agent"`
	Kind     stream.WaitKind `json:"kind"`
	Event    string          `json:"event,omitempty"`
	Match    map[string]any  `json:"match,omitempty"`
	Message  string          `json:"message"`
	OpenedAt time.Time       `json:"openedAt"`
	Until    time.Time       `json:"until"`
}

// listWaits serves GET /v1/waits: the open waits of the threads that the caller may read, those that
// end first at the beginning. A wait that has just ended may still be in the list.
func (r *Routes) listWaits(c *gin.Context) error {
	ctx := c.Request.Context()
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	caller := request.Caller(ctx)
	kind, agent, thread := stream.WaitKind(c.Query("kind")), c.Query("agent"), c.Query("thread")
	if kind != "" && kind != stream.WaitTimer && kind != stream.WaitEvent {
		return problem.InvalidParameter("kind", "kind must be timer or event")
	}
	event := c.Query("event")
	all := r.Waits.List(caller.Tenant, func(w *events.Wait) bool {
		return (kind == "" || w.Kind == kind) && (agent == "" || w.Agent == agent) && (thread == "" || w.ThreadID == thread) && (event == "" || w.Event == event)
	})
	if after := c.Query("cursor"); after != "" {
		at := slices.IndexFunc(all, func(w *events.Wait) bool { return w.Position() > after })
		if at < 0 {
			at = len(all)
		}
		all = all[at:]
	}
	page := struct {
		Items      []wait `json:"items"`
		NextCursor string `json:"nextCursor,omitempty"`
	}{Items: []wait{}}
	for i, w := range all {
		if r.Access.Check(ctx, stream.Thread{Tenant: caller.Tenant, ID: w.ThreadID}, policy.ReadThread) != nil {
			continue
		}
		if len(page.Items) == limit {
			page.NextCursor = all[i-1].Position()
			break
		}
		page.Items = append(page.Items, wait{w.ID, w.ThreadID, w.RunID, w.Agent, w.Kind, w.Event, w.Match, w.Message, w.OpenedAt, w.Until})
	}
	return request.WriteJSON(c, http.StatusOK, page)
}
