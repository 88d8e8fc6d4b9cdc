package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// AuditFilter selects entries of the audit log. Zero fields select all.
type AuditFilter struct {
	// Platform selects the entries of the platform instead of those of the caller's tenant.
	Platform bool
	// Since and Until are times of RFC 3339: Since ≤ time < Until.
	Since, Until string
	Action       string
	Outcome      string // accepted, denied or unknown
	Subject      string // of the actor
	Thread       string
	// Order tells which entries are first: oldest (the default) or newest.
	Order string
}

// AuditPage is a page of entries, oldest first unless AuditFilter.Order is newest. It may have no
// items and a next page.
type AuditPage struct {
	// Items are the bytes of the entries: the SHA-256 of an item is Previous of the next entry.
	Items      []json.RawMessage `json:"items"`
	NextCursor string            `json:"nextCursor,omitempty"`
}

// AuditEntry is an entry of the audit log. docs/guides/audit.md lists actions and details.
type AuditEntry struct {
	Number  uint64    `json:"number"`
	Time    time.Time `json:"time"`
	Action  string    `json:"action"`
	Outcome string    `json:"outcome"`
	Status  int       `json:"status,omitempty"`
	Code    string    `json:"code,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	// Actor is nil for a process of Perdure, and for a caller without valid credentials.
	Actor *struct {
		Tenant       string   `json:"tenant"`
		Subject      string   `json:"subject,omitempty"`
		Roles        []string `json:"roles,omitempty"`
		RolesOmitted int      `json:"rolesOmitted,omitempty"`
	} `json:"actor,omitempty"`
	Source *struct {
		Address   string `json:"address,omitempty"`
		UserAgent string `json:"userAgent,omitempty"`
		TraceID   string `json:"traceId,omitempty"`
	} `json:"source,omitempty"`
	Thread   string            `json:"thread,omitempty"`
	Run      string            `json:"run,omitempty"`
	Agent    string            `json:"agent,omitempty"`
	Approval string            `json:"approval,omitempty"`
	Schedule string            `json:"schedule,omitempty"`
	Details  map[string]string `json:"details,omitempty"`
	Previous string            `json:"previous,omitempty"`
}

// AuditEntries returns a page of the audit log. The caller must be an administrator of the tenant, or
// of the platform.
func (c *Client) AuditEntries(ctx context.Context, f AuditFilter, p Paging) (Document[AuditPage], error) {
	platform := ""
	if f.Platform {
		platform = "true"
	}
	q := p.query("platform", platform, "since", f.Since, "until", f.Until, "action", f.Action, "outcome", f.Outcome, "subject", f.Subject, "thread", f.Thread, "order", f.Order)
	return document[AuditPage](ctx, c, get("/v1/audit", q))
}

// Hold is a legal hold: a thread with one, or of a tenant with one, cannot be deleted.
type Hold struct {
	Reason string    `json:"reason"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

// Hold returns the legal hold on a thread, or on the caller's tenant if thread is empty. Without a
// hold the error is a *Problem with the code unknown_hold.
func (c *Client) Hold(ctx context.Context, thread string) (Document[Hold], error) {
	return document[Hold](ctx, c, get(holdPath(thread), nil))
}

// SetHold sets a legal hold on a thread, or on the caller's tenant if thread is empty.
func (c *Client) SetHold(ctx context.Context, thread, reason string) (Document[Hold], error) {
	r, err := post(holdPath(thread), map[string]any{"reason": reason})
	if err != nil {
		return Document[Hold]{}, err
	}
	r.method = http.MethodPut
	return document[Hold](ctx, c, r)
}

// ReleaseHold releases the legal hold on a thread, or on the caller's tenant if thread is empty.
func (c *Client) ReleaseHold(ctx context.Context, thread string) error {
	_, err := c.send(ctx, request{method: http.MethodDelete, path: holdPath(thread)})
	return err
}

// holdPath returns the path of a hold.
func holdPath(thread string) string {
	if thread == "" {
		return "/v1/hold"
	}
	return threadPath(thread) + "/hold"
}
