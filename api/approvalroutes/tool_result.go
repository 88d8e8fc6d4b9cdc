package approvalroutes

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/request"
)

// postToolResult takes the result of a client tool call. It answers when the run has taken the
// result. The same result again is taken once; another one is refused with the one that stands.
func (s *Routes) postToolResult(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	var r decisions.ToolResult
	if err == nil {
		err = s.ReadJSON(c, &r)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	answer, err := s.decisions.TakeResult(ctx, thread, r, request.ChannelHTTP)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, answer)
}
