package api

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/links"
)

// Inbox has the dependencies of the routes for interrupts of all threads. All members but PublicURL are required.
type Inbox struct {
	Store *inbox.Store
	Index *inbox.Index
	Links *links.Keeper
	// PublicURL is the address in links, without a slash at its end. Defaults to the host of the request.
	PublicURL string
}

// approvalRoutes are the routes for interrupts of all threads, and for the audit of one thread.
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

// linkRoutes are the routes for links. They need no authentication.
func (s *Server) linkRoutes(r gin.IRoutes) {
	if s.Inbox == nil {
		return
	}
	r.GET(linkPath+":token", s.showLink)
	r.HEAD(linkPath+":token", s.showLink) // programs that check the links of a mail send HEAD
	r.POST(linkPath+":token", s.useLink)
}

// showAudit answers with every interrupt that a thread ever had, and its decisions.
func (s *Server) showAudit(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	if err == nil {
		err = s.find.CheckThread(c.Request.Context(), thread, nil)
	}
	var limit, from int
	if err == nil {
		limit, err = request.Limit(c)
	}
	if err == nil {
		from, err = request.ParseCount(c.Query("cursor"))
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
		s.Refuse(c, err)
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
		page.NextCursor = request.CountCursor(from + limit)
	}
	c.JSON(http.StatusOK, page)
}

// approvalStatus reads which interrupts the client selects: open, decided (or expired), or all ("").
func approvalStatus(c *gin.Context) (inbox.Status, error) {
	text, ok := c.GetQuery("status")
	status := inbox.Status(text)
	if ok && status != inbox.StatusOpen && status != inbox.StatusDecided {
		return "", problem.BadRequest("invalid_input", "", "status must be open or decided")
	}
	return status, nil
}
