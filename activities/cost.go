package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/budget"
	"github.com/perdure/perdure/workflows"
)

// codeNoPrice is the code of RUN_ERROR for runs whose models are not called since nobody knows what that would cost.
const codeNoPrice = "price_unknown"

var errNoPrice = errors.New("activities: what models cost is limited, and this one has no price")

// mayPay tells whether a model may be called: the tenant has something left of its budget, and where what models cost is
// limited, it is known. An excess says what people are to be asked before, who have let the run go as far as day says; they
// are asked nothing if that is nil.
func (a *Activities) mayPay(ctx context.Context, in workflows.ModelCall, model string, day *workflows.Day) (*workflows.Excess, error) {
	limited := in.Priced || a.Budget.Of(in.Run.Tenant).LimitsCost()
	if _, known := a.Prices.Price(model); limited && !known {
		return nil, errNoPrice
	}
	return a.dayBeyond(ctx, in.Run.Tenant, day)
}

// dayBeyond is what people are to be asked about the day of a tenant, who have let the run go as far as day says; nil =
// nothing. It fails if the tenant has nothing left.
func (a *Activities) dayBeyond(ctx context.Context, tenant string, day *workflows.Day) (*workflows.Excess, error) {
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
	return &workflows.Excess{Code: workflows.CodeBudgetExceeded, Limit: limit, Date: x.Date, Used: x.Used, Allowed: x.Allowed}, nil
}

// count adds what an answer has used to what its tenant has used today. It comes behind the record of the answer: an attempt
// that dies in between is followed by one that finds the record, and counts.
func (a *Activities) count(ctx context.Context, in workflows.ModelCall, answer workflows.ModelAnswer) error {
	usage := append([]workflows.Usage{answer.Usage}, answer.More...)
	cost, _ := workflows.Cost(usage)
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return a.Budget.Count(ctx, in.Run.Tenant, runOf(in.Run).Identify("use", in.ID), workflows.Tokens(usage), agents.Money(cost))
}

// priced adds what a call has cost to what it has used, if both are known.
func (a *Activities) priced(model string, u workflows.Usage) workflows.Usage {
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

// metadataCost is where a run's end says what its models have cost: the protocol's usage has tokens only.
const metadataCost = "perdure.cost"

func (a *Activities) costMetadata(usage []workflows.Usage) (agui.Metadata, error) {
	sum, known := workflows.Cost(usage)
	if !known {
		return nil, nil
	}
	told, err := json.Marshal(struct {
		Amount   agents.Money `json:"amount"`
		Currency string       `json:"currency,omitempty"`
	}{agents.Money(sum), a.currency()})
	if err != nil {
		return nil, fmt.Errorf("activities: encode cost: %w", err)
	}
	return agui.Metadata{metadataCost: told}, nil
}
