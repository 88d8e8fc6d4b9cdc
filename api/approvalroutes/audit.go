package approvalroutes

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth/policy"
)

// showAudit serves GET /v1/threads/{thread}/approvals: every approval and question that the thread
// has raised, with its events and decisions, oldest first. It reads the audit of the whole thread
// for each page. The cursor is an index among the selected entries, so it fits only requests with
// the same status. An unknown thread is a 404.
func (r *Routes) showAudit(c *gin.Context) error {
	thread, err := access.Address(c.Request.Context(), request.Segment(c, "thread"))
	if err != nil {
		return err
	}
	if err := r.finder.CheckThread(c.Request.Context(), thread, nil); err != nil {
		return err
	}
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	from, err := request.ParseCount(c.Query("cursor"))
	if err != nil {
		return err
	}
	status, err := readStatus(c)
	if err != nil {
		return err
	}
	if err := r.awaitAudit(c); err != nil {
		return err
	}
	all, err := inbox.ReadHistory(c.Request.Context(), r.finder.Log, thread)
	if err != nil {
		return err
	}
	if err := r.access.Check(c.Request.Context(), thread, policy.ReadThread); err != nil {
		return err
	}
	// Expired interrupts count as decided.
	if status != "" {
		all = slices.DeleteFunc(all, func(h *inbox.History) bool { return (h.Status == inbox.StatusOpen) != (status == inbox.StatusOpen) })
	}
	page := struct {
		Items      []*inbox.History `json:"items"`
		NextCursor string           `json:"nextCursor,omitempty"`
	}{Items: slices.Clone(all[min(from, len(all)):min(from+limit, len(all))])}
	if page.Items == nil {
		page.Items = []*inbox.History{}
	}
	if from+limit < len(all) {
		page.NextCursor = request.CountCursor(from + limit)
	}
	return request.WriteJSON(c, http.StatusOK, page)
}

// readStatus reads the parameter status: open, decided, which includes expired, or "" for all.
// Other values are a 400.
func readStatus(c *gin.Context) (inbox.Status, error) {
	text, ok := c.GetQuery("status")
	status := inbox.Status(text)
	if ok && status != inbox.StatusOpen && status != inbox.StatusDecided {
		return "", problem.InvalidParameter("status", "status must be open or decided")
	}
	return status, nil
}

// awaitAudit blocks until the audit and the inbox show the decision of the parameter waitFor, if
// the request has it.
func (r *Routes) awaitAudit(c *gin.Context) error {
	if r.inbox == nil {
		return nil
	}
	return problem.InParameter("waitFor", r.finder.AwaitAudit(c.Request.Context(), request.Caller(c.Request.Context()).Tenant, r.inbox.Index, c.Query("waitFor")))
}
