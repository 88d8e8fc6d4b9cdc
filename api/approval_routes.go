package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/internal/links"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Inbox is what the routes about approvals of all threads work with. All of it must be set, but PublicURL.
type Inbox struct {
	Store *inbox.Store
	Index *inbox.Index
	Links *links.Keeper
	// PublicURL is where links lead, without a slash at its end. Empty = where the request for one came to.
	PublicURL string
}

// approvalRoutes are those about approvals of all threads, and about what became of a thread's.
func (s *Server) approvalRoutes(v1 *gin.RouterGroup) {
	v1.GET("/threads/:thread/approvals", s.showAudit)
	if s.Inbox == nil {
		return
	}
	v1.GET("/approvals", s.listApprovals)
	v1.GET("/approvals/events", s.approvalEvents)
	v1.POST("/approvals/batch", s.decideBatch)
	v1.POST("/threads/:thread/approvals/:approval/links", s.makeLink)
}

// linkRoutes are for whoever has a link: nobody signs in here.
func (s *Server) linkRoutes(r gin.IRoutes) {
	if s.Inbox == nil {
		return
	}
	r.GET(linkPath+":token", s.showLink)
	r.HEAD(linkPath+":token", s.showLink) // as programs look that check the links of a mail
	r.POST(linkPath+":token", s.useLink)
}

// forget takes an approval out of the list when a decision shows that nothing waits for it: the run has gone
// on, or there is none. That it stays listed for a while would do no harm, so that this may fail.
func (s *Server) forget(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot, id string, err error) {
	var p *Problem
	if s.Inbox == nil || !errors.As(err, &p) {
		return
	}
	if p.Code != codeUnknownApproval && questionOf(now.Interrupts, id) != nil {
		return
	}
	if err := s.Inbox.Index.Forget(ctx, thread.Tenant, thread.ID, id); err != nil {
		s.logger.WarnContext(ctx, "an approval that waits no more stays listed", "thread", thread.ID, "approval", id, "error", err)
	}
}

// showAudit shows every approval that a thread ever asked for, and what became of each.
func (s *Server) showAudit(c *gin.Context) {
	thread, err := threadOf(c)
	if err == nil {
		err = s.knowsThread(c.Request.Context(), thread, nil)
	}
	var limit, from int
	if err == nil {
		limit, err = limitOf(c)
	}
	if err == nil {
		from, err = countBehind(c.Query("cursor"))
	}
	var status inbox.Status
	if err == nil {
		status, err = approvalStatus(c)
	}
	var all []*inbox.Past
	if err == nil {
		all, err = inbox.History(c.Request.Context(), s.Log, thread)
	}
	if status != "" {
		all = slices.DeleteFunc(all, func(p *inbox.Past) bool { return (p.Status == inbox.StatusOpen) != (status == inbox.StatusOpen) })
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	page := struct {
		Items      []*inbox.Past `json:"items"`
		NextCursor string        `json:"nextCursor,omitempty"`
	}{Items: slices.Clone(all[min(from, len(all)):min(from+limit, len(all))])}
	if page.Items == nil {
		page.Items = []*inbox.Past{}
	}
	if from+limit < len(all) {
		page.NextCursor = cursorBehind(from + limit)
	}
	c.JSON(http.StatusOK, page)
}

// approvalStatus reads which approvals a client asks for: those that are open, or those that are decided, also by time;
// "" = both.
func approvalStatus(c *gin.Context) (inbox.Status, error) {
	text, ok := c.GetQuery("status")
	status := inbox.Status(text)
	if ok && status != inbox.StatusOpen && status != inbox.StatusDecided {
		return "", badRequest("invalid_input", "", "status must be open or decided")
	}
	return status, nil
}
