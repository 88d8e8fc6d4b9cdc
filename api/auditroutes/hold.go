package auditroutes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
)

// maxReasonBytes bounds the reason of a hold, in bytes.
const maxReasonBytes = audit.MaxTextBytes

// held returns what a request is about: the caller's tenant, or the thread in the path. Errors: 400
// invalid_input, 403, 404 unknown_thread.
func (r *Routes) held(c *gin.Context) (store.Held, error) {
	ctx := c.Request.Context()
	held := store.Held{Tenant: request.Caller(ctx).Tenant}
	if c.Param("thread") == "" {
		return held, r.Access.CheckTenant(ctx, policy.SetHold)
	}
	thread, err := r.Access.ThreadOf(c, policy.SetHold)
	held.Thread = thread.ID
	return held, err
}

// showHold serves GET /v1/hold and GET /v1/threads/{thread}/hold. Errors: 403, 404 unknown_hold.
func (r *Routes) showHold(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	held, err := r.held(c)
	if err != nil {
		return err
	}
	hold, err := r.Audit.Holds.Get(ctx, held)
	if err != nil {
		return err
	}
	if hold == nil {
		return problem.Unknown("hold", "")
	}
	return request.WriteJSON(c, http.StatusOK, hold)
}

// putHold serves PUT /v1/hold and PUT /v1/threads/{thread}/hold: it sets a legal hold, in place of
// an earlier one. Errors: 400 invalid_input, 403.
func (r *Routes) putHold(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	held, err := r.held(c)
	if err != nil {
		return err
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err := r.ReadJSON(c, &body); err != nil {
		return err
	}
	if strings.TrimSpace(body.Reason) == "" || len(body.Reason) > maxReasonBytes {
		return problem.BadRequest("invalid_input", "/reason", fmt.Sprintf("must say why, in at most %d bytes", maxReasonBytes))
	}
	auditing.Detail(ctx, "reason", body.Reason)
	hold := store.Hold{Reason: body.Reason, By: request.Caller(ctx).Subject, At: time.Now().UTC().Truncate(time.Second)}
	if err := r.Audit.Holds.Set(ctx, held, hold); err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, hold)
}

// deleteHold serves DELETE /v1/hold and DELETE /v1/threads/{thread}/hold: it releases a legal hold.
// It answers 204, also if there is none. Errors: 403.
func (r *Routes) deleteHold(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	held, err := r.held(c)
	if err != nil {
		return err
	}
	if err := r.Audit.Holds.Release(ctx, held); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
