package auditroutes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// listEntries serves GET /v1/audit: the entries of the caller's tenant, or with platform=true those
// of the platform, oldest first unless order=newest. The items are the stored bytes, so that a
// client can verify the chain. A page without items may have a next one, because a page reads at
// most store.MaxScanned entries. Errors: 400 invalid_input, 400 invalid_cursor, 403.
func (r *Routes) listEntries(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	chain, err := r.chain(c)
	if err != nil {
		return err
	}
	filter, err := filterOf(c)
	if err != nil {
		return err
	}
	readPage, position := r.Audit.Log.Page, &filter.After
	switch order := c.DefaultQuery("order", "oldest"); order {
	case "oldest":
	case "newest":
		readPage, position = r.Audit.Log.NewestPage, &filter.Before
	default:
		return problem.InvalidParameter("order", "order must be oldest or newest")
	}
	if cursor := c.Query("cursor"); cursor != "" {
		if *position, err = strconv.ParseUint(cursor, 10, 63); err != nil {
			return fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
		}
	}
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	page, err := readPage(ctx, chain, filter, limit)
	if err != nil {
		return err
	}
	next := ""
	if page.Next > 0 {
		next = strconv.FormatUint(page.Next, 10)
	}
	return request.WritePage(c, page.Entries, next,
		func(raw json.RawMessage) int { return len(raw) },
		func(raw json.RawMessage) ([]byte, error) { return raw, nil })
}

// chain returns the chain that a request reads, if the caller may read it.
func (r *Routes) chain(c *gin.Context) (store.Chain, error) {
	ctx := c.Request.Context()
	isPlatform, err := request.Flag(c, "platform", false)
	if err != nil {
		return store.Chain{}, err
	}
	if isPlatform {
		return store.Platform, r.Access.CheckPlatform(ctx, policy.ReadAudit)
	}
	return store.OfTenant(request.Caller(ctx).Tenant), r.Access.CheckTenant(ctx, policy.ReadAudit)
}

// filterOf reads the parameters of a filter, without the cursor. Errors: 400 invalid_input.
func filterOf(c *gin.Context) (f store.Filter, err error) {
	f = store.Filter{Action: audit.Action(c.Query("action")), Outcome: audit.Outcome(c.Query("outcome")), Subject: c.Query("subject"), Thread: c.Query("thread")}
	if !slices.Contains([]audit.Outcome{"", audit.Accepted, audit.Denied, audit.Unknown}, f.Outcome) {
		return f, problem.InvalidParameter("outcome", "outcome must be accepted, denied or unknown")
	}
	for name, at := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		if text := c.Query(name); text != "" {
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return f, problem.InvalidParameter(name, name+" must be a time of RFC 3339, such as 2026-03-01T08:00:00Z")
			}
		}
	}
	return f, nil
}
