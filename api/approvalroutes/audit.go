package approvalroutes

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
)

// showAudit answers with every interrupt that a thread ever had, and its decisions.
func (s *Routes) showAudit(c *gin.Context) {
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
		all, err = inbox.History(c.Request.Context(), s.find.Log, thread)
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

// approvalStatus reads which interrupts the client selects: open, decided (or expired), or all
// ("").
func approvalStatus(c *gin.Context) (inbox.Status, error) {
	text, ok := c.GetQuery("status")
	status := inbox.Status(text)
	if ok && status != inbox.StatusOpen && status != inbox.StatusDecided {
		return "", problem.BadRequest("invalid_input", "", "status must be open or decided")
	}
	return status, nil
}
