package approvalroutes

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/request"
)

// postToolResult serves POST /v1/threads/{thread}/tool-results: it takes the result of a client
// tool call. It answers 200 with a decisions.ResultReceipt when the thread has durably accepted
// the result. The same result again is a repetition.
//
// Errors: 404 unknown_tool_call, 409 answered with the result that stands, 410 abandoned, 422
// invalid_tool_result, 503 if the outcome is unknown.
func (r *Routes) postToolResult(c *gin.Context) error {
	thread, err := access.Address(c.Request.Context(), request.Segment(c, "thread"))
	if err != nil {
		return err
	}
	var result decisions.ToolResult
	if err := r.ReadJSON(c, &result); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	receipt, err := r.decisions.SubmitResult(ctx, thread, result, request.ChannelHTTP)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, receipt)
}
