package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// codeNoPrice is the code of RUN_ERROR if a model has no price and costs are limited.
const codeNoPrice = "price_unknown"

var errNoPrice = errors.New("activities: what models cost is limited, and this one has no price")

// mayPay reports whether a model may be called: the tenant has budget left and, if costs are
// limited, the model has a price. It returns the exceeded limit that people have to approve first.
// day is what they have approved of the tenant's day; nil = they are not asked.
func (a *Activities) mayPay(ctx context.Context, in runs.ModelCall, model string, day *runs.DayAllowance) (*runs.ExceededLimit, error) {
	limited := in.Priced || a.Budget.Of(in.Run.Tenant).LimitsCost()
	if _, known := a.Prices.Price(model); limited && !known {
		return nil, errNoPrice
	}
	return a.dayBeyond(ctx, in.Run.Tenant, day)
}

// dayBeyond returns the exceeded limit of the tenant's day, nil = none. The error tells that the
// tenant has no budget left.
func (a *Activities) dayBeyond(ctx context.Context, tenant string, day *runs.DayAllowance) (*runs.ExceededLimit, error) {
	var allowed *budget.Allowed
	if day != nil {
		allowed = &budget.Allowed{Date: day.Date, Tokens: day.Tokens, Cost: agents.Money(day.Cost)}
	}
	x, err := a.Budget.Check(ctx, tenant, allowed)
	if x == nil || err != nil {
		return nil, err
	}
	limit := pipeline.LimitTokensPerDay
	if x.Money {
		limit = pipeline.LimitCostPerDay
	}
	return &runs.ExceededLimit{Code: runs.CodeBudgetExceeded, Limit: limit, Date: x.Date, Used: x.Used, Allowed: x.Allowed}, nil
}

// count adds the usage of a step to its tenant's day, once for each step. It is called after the
// log has the usage: if an attempt dies in between, the next one counts.
func (a *Activities) count(ctx context.Context, run stream.Run, step string, usage []runs.Usage) error {
	cost, _ := runs.Cost(usage)
	estimated, _ := runs.Estimated(usage)
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	return a.Budget.Count(ctx, run.Thread.Tenant, run.Identify("use", step), budget.Use{
		Tokens: runs.Tokens(usage), Cost: agents.Money(cost), Estimated: estimated,
	})
}

// countAnswer is count for a model call.
func (a *Activities) countAnswer(ctx context.Context, in runs.ModelCall, answer runs.ModelAnswer) error {
	return a.count(ctx, runOf(in.Run), in.ID, usageIn(answer))
}

// priced adds the cost of a call to its usage, if both are known.
func (a *Activities) priced(model string, u runs.Usage) runs.Usage {
	price, known := a.Prices.Price(model)
	if !known || u.Input == nil && u.Output == nil && u.Total == nil {
		return u
	}
	cost := int64(price.Cost(budget.Tokens{
		Input: u.Input, Output: u.Output, Total: u.Total, Reasoning: u.Reasoning, CachedInput: u.CachedInput, CacheWrite: u.CacheWrite,
	}))
	u.Cost = &cost
	return u
}

func (a *Activities) currency() string {
	if a.Prices == nil {
		return ""
	}
	return a.Prices.Currency
}

// metadataCost is the metadata key of the cost in a run's last event: AG-UI's usage has tokens
// only.
const metadataCost = "perdure.cost"

// usageMetadata returns the metadata about usage in a run's last event; nil = none.
func (a *Activities) usageMetadata(usage []runs.Usage) (agui.Metadata, error) {
	metadata := agui.Metadata{}
	if err := a.costMetadata(metadata, usage); err != nil {
		return nil, err
	}
	var cut snapshot.EstimatedUsage
	for _, u := range usage {
		if e := u.Estimated; e != nil {
			total := e.Input + e.Output
			cut.Calls += e.Calls
			cut.Usage = append(cut.Usage, agui.TokenUsage{
				Provider: u.Provider, Model: u.Model, InputTokens: &e.Input, OutputTokens: &e.Output, TotalTokens: &total,
			})
		}
	}
	if err := cut.Put(metadata); err != nil {
		return nil, err
	}
	if len(metadata) == 0 {
		return nil, nil
	}
	return metadata, nil
}

func (a *Activities) costMetadata(metadata agui.Metadata, usage []runs.Usage) error {
	sum, known := runs.Cost(usage)
	if !known {
		return nil
	}
	var estimated agents.Money
	for _, u := range usage {
		if u.Estimated != nil {
			estimated += agents.Money(u.Estimated.Cost)
		}
	}
	told, err := json.Marshal(struct {
		Amount    agents.Money `json:"amount"`
		Currency  string       `json:"currency,omitempty"`
		Estimated agents.Money `json:"estimated,omitempty"` // the part that is estimated
	}{agents.Money(sum), a.currency(), estimated})
	if err != nil {
		return fmt.Errorf("activities: encode cost: %w", err)
	}
	metadata[metadataCost] = told
	return nil
}
