package approvalroutes

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/request"
)

// postToolResult serves POST /v1/threads/{thread}/tool-results: it takes the result of a client
// tool call. It answers 200 with a decisions.AcceptedResult when the thread has durably accepted
// the result. The same result again is a repetition.
//
// Errors: 404 unknown_tool_call, 409 answered with the result that stands, 410 abandoned, 422
// invalid_tool_result, 503 if the outcome is unknown.
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
