package approvalroutes

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/request"
)

// decideApproval decides about a tool call. It answers when the run has taken the decision. The
// same decision again is taken once; another one is refused with the one that stands.
func (s *Routes) decideApproval(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	var v decisions.Request
	if err == nil {
		err = s.ReadJSON(c, &v)
	}
	if err == nil {
		err = v.Check("")
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(request.WithChannel(c.Request.Context(), request.ChannelIn(c, request.ChannelHTTP)), request.Patience)
	defer cancel()
	answer, err := s.decisions.Decide(ctx, thread, request.Segment(c, "approval"), v)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}
