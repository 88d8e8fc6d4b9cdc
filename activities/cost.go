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

// This file connects model calls with money: it checks the budget before a call, counts the usage
// of a step after it, and shows the cost in a run's last event.

// codeNoPrice is the code of RUN_ERROR if costs are limited and the model has no price.
const codeNoPrice = "price_unknown"

// errNoPrice is final: a limit of costs cannot be kept for a model without a price.
var errNoPrice = errors.New("activities: costs are limited, and the model has no price")

// checkBudget checks whether models may be called. The error is errNoPrice if costs are limited
// and one of the models has no price, or budget.ErrExceeded if the tenant's day is used up; both end the
// run. It returns the exceeded soft limit if approvers have to allow more first; nil = the call may
// be made. day is what approvers have allowed so far; nil = this run cannot ask approvers, and soft
// limits do not apply. Models have their provider's prefix.
func (a *Activities) checkBudget(ctx context.Context, in runs.ModelCall, models []string, day *runs.DayAllowance) (*runs.ExceededLimit, error) {
	limited := in.Priced || a.Budget.Of(in.Run.Tenant).LimitsCost()
	for _, model := range models {
		if _, ok := a.Prices.Price(model); limited && !ok {
			return nil, errNoPrice
		}
	}
	return a.checkDay(ctx, in.Run.Tenant, day)
}

// checkDay checks the tenant's day only; see checkBudget for the results.
func (a *Activities) checkDay(ctx context.Context, tenant string, day *runs.DayAllowance) (*runs.ExceededLimit, error) {
	var allowed *budget.Allowed
	if day != nil {
		allowed = &budget.Allowed{Date: day.Date, Tokens: day.Tokens, Cost: agents.Money(day.Cost)}
	}
	excess, err := a.Budget.Check(ctx, tenant, allowed)
	if excess == nil || err != nil {
		return nil, err
	}
	limit := pipeline.LimitTokensPerDay
	if excess.Money {
		limit = pipeline.LimitCostPerDay
	}
	return &runs.ExceededLimit{Code: runs.CodeBudgetExceeded, Limit: limit, Date: excess.Date, Used: excess.Used, Allowed: excess.Allowed}, nil
}

// addToLedger adds the usage of a step to its tenant's day, once for each step: the ledger knows
// the steps that it has counted. Call it after the log has the usage, so that an attempt after a
// crash counts the same. It also works after ctx has ended.
func (a *Activities) addToLedger(ctx context.Context, run stream.Run, step string, usage []runs.Usage) error {
	cost, _ := runs.Cost(usage)
	estimated, _ := runs.Estimated(usage)
	// A cancelled call was billed as well.
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	return a.Budget.Count(ctx, run.Thread.Tenant, run.Identify("use", step), budget.Use{
		Tokens: runs.Tokens(usage), Cost: agents.Money(cost), Estimated: estimated,
	})
}

// countAnswer counts the usage of a model call with all that its answer reports.
func (a *Activities) countAnswer(ctx context.Context, in runs.ModelCall, answer runs.ModelAnswer) error {
	return a.addToLedger(ctx, runOf(in.Run), in.ID, answerUsage(answer))
}

// withCost sets the cost of a call, if the model has a price and the provider has reported tokens.
// model has its provider's prefix.
func (a *Activities) withCost(model string, u runs.Usage) runs.Usage {
	price, ok := a.Prices.Price(model)
	if !ok || u.Input == nil && u.Output == nil && u.Total == nil {
		return u
	}
	cost := int64(price.Cost(budget.Tokens{
		Input: u.Input, Output: u.Output, Total: u.Total, Reasoning: u.Reasoning, CachedInput: u.CachedInput, CacheWrite: u.CacheWrite,
	}))
	u.Cost = &cost
	return u
}

// currency returns the currency of the prices, such as USD; "" = there are no prices.
func (a *Activities) currency() string {
	if a.Prices == nil {
		return ""
	}
	return a.Prices.Currency
}

// usageMetadata returns the metadata of a run's last event with its cost, and with the part of the
// usage that is estimated; nil = neither is known.
func (a *Activities) usageMetadata(usage []runs.Usage) (agui.Metadata, error) {
	metadata := agui.Metadata{}
	if err := a.costMetadata(metadata, usage); err != nil {
		return nil, err
	}
	// AG-UI's usage does not distinguish estimates, so the metadata repeats their part.
	var estimated snapshot.EstimatedUsage
	for _, u := range usage {
		if e := u.Estimated; e != nil {
			total := e.Input + e.Output
			estimated.Calls += e.Calls
			estimated.Usage = append(estimated.Usage, agui.TokenUsage{
				Provider: u.Provider, Model: u.Model, InputTokens: &e.Input, OutputTokens: &e.Output, TotalTokens: &total,
			})
		}
	}
	if err := estimated.Put(metadata); err != nil {
		return nil, err
	}
	if len(metadata) == 0 {
		return nil, nil
	}
	return metadata, nil
}

// costMetadata adds the cost to the metadata; nothing if no cost is known.
func (a *Activities) costMetadata(metadata agui.Metadata, usage []runs.Usage) error {
	sum, ok := runs.Cost(usage)
	if !ok {
		return nil
	}
	var estimated agents.Money
	for _, u := range usage {
		if u.Estimated != nil {
			estimated += agents.Money(u.Estimated.Cost)
		}
	}
	encodedCost, err := json.Marshal(struct {
		Amount   agents.Money `json:"amount"`
		Currency string       `json:"currency,omitempty"`
		// Estimated is the part of Amount that is estimated.
		Estimated agents.Money `json:"estimated,omitempty"`
	}{agents.Money(sum), a.currency(), estimated})
	if err != nil {
		return fmt.Errorf("activities: encode cost: %w", err)
	}
	metadata[stream.MetadataCost] = encodedCost
	return nil
}
