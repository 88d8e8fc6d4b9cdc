package approvalroutes

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/request"
)

// decideApproval serves POST /v1/threads/{thread}/approvals/{approval}: it decides an approval or
// answers a question. It answers 200 with a decisions.Decided when the thread has durably accepted
// the decision or the vote. The same decision again is a repetition and changes nothing.
//
// Errors: 403 not_an_approver or not_by_requester, 404 unknown_approval, 409 decided with the
// decision that stands, 410 expired, 422 for a decision that does not fit, 503 if the outcome is
// unknown.
func (r *Routes) decideApproval(c *gin.Context) error {
	thread, err := access.Address(c.Request.Context(), request.Segment(c, "thread"))
	if err != nil {
		return err
	}
	var decision decisions.Request
	if err := r.ReadJSON(c, &decision); err != nil {
		return err
	}
	if err := decision.Check(""); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(request.WithChannel(c.Request.Context(), request.ChannelIn(c, request.ChannelHTTP)), request.ResponseTimeout)
	defer cancel()
	receipt, err := r.decisions.Decide(ctx, thread, request.Segment(c, "approval"), decision)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, receipt)
}
