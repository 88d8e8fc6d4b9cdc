package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
)

// UsageQuery selects the runs of a report of usage. From and To are days in UTC, such as 2026-01-31;
// both are included. The zero value selects the runs of the last 30 days, by day.
type UsageQuery struct {
	From, To string
	// GroupBy has one or more of agent, model, tenant and day.
	GroupBy []string
	// Agent selects the runs of one agent. Tenant selects another tenant than the caller's, for
	// administrators of the platform.
	Agent, Tenant string
}

// Usage is what runs have used.
type Usage struct {
	Items []UsageItem `json:"items"`
	// AllTenants tells that the caller may read the usage of all tenants.
	AllTenants bool `json:"allTenants"`
}

// UsageItem is what the runs of a group have used. Of Day to Model it has those by which the report
// is grouped.
type UsageItem struct {
	Day    string `json:"day"`
	Tenant string `json:"tenant"`
	Agent  string `json:"agent"`
	Model  string `json:"model"` // provider/model

	// Runs is without the runs that ended with an interrupt, which Interrupted counts. Failed and
	// Cancelled are runs of Runs.
	Runs         int64 `json:"runs"`
	Failed       int64 `json:"failed"`
	Cancelled    int64 `json:"cancelled"`
	Interrupted  int64 `json:"interrupted"`
	InputTokens  int64 `json:"inputTokens"`
	OutputTokens int64 `json:"outputTokens"`
	TotalTokens  int64 `json:"totalTokens"`
	// Cost is nil if no price is known, or if the prices have had several currencies.
	Cost *UsageCost `json:"cost"`
	// Seconds is the sum of the durations of the runs and the interrupted runs.
	Seconds float64 `json:"seconds"`
}

// UsageCost is the cost of runs, as a decimal number.
type UsageCost struct {
	Amount   json.Number `json:"amount"`
	Currency string      `json:"currency"`
}

// Usage returns what the runs that ended in a period have used.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (Document[Usage], error) {
	query := url.Values{}
	for name, value := range map[string]string{
		"from": q.From, "to": q.To, "groupBy": strings.Join(q.GroupBy, ","), "agent": q.Agent, "tenant": q.Tenant,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return document[Usage](ctx, c, get("/v1/usage", query))
}
