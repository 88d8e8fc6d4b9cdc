package client

import (
	"context"
	"net/url"
)

// Quotas are what a tenant has of its quotas, and its rates.
type Quotas struct {
	Tenant string  `json:"tenant"`
	Quotas []Quota `json:"quotas"`
	Rates  []Rate  `json:"rates"`
	// SubjectPercent is the part of the streams, sockets, runs, schedules and firings that one
	// subject may have; nil = all.
	SubjectPercent *int64 `json:"subjectPercent"`
}

// Quota is what a tenant has of a quota. Limit is nil if it is unlimited.
type Quota struct {
	Quota string `json:"quota"`
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit"`
}

// Rate is a rate of a tenant, or of each of its subjects. PerSecond is nil if it is unlimited.
type Rate struct {
	Rate      string `json:"rate"`
	PerSecond *int64 `json:"perSecond"`
}

// Quotas returns the quotas of a tenant; "" = that of the caller. Only administrators of the platform
// may read those of another tenant.
func (c *Client) Quotas(ctx context.Context, tenant string) (Document[Quotas], error) {
	query := url.Values{}
	if tenant != "" {
		query.Set("tenant", tenant)
	}
	return document[Quotas](ctx, c, get("/v1/quotas", query))
}
