package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
)

// What a tenant uses in a day is known where models are called, not here. A call of a run that may ask people finds its
// tenant's soft budget used up, and says so instead of calling the model; then the run asks, as about other soft limits,
// and takes the turn again when it may. Calls of those that cannot ask go through: of subagents and branches, before which a pipeline asks, and of what
// compensates for what was done.

// DayAllowance is how much a tenant may have used on a day, as people have allowed one run. It says nothing about another day.
type DayAllowance struct {
	Date   string `json:"date,omitempty"` // in UTC, such as 2026-01-31
	Tokens int64  `json:"tokens,omitempty"`
	Cost   int64  `json:"cost,omitempty"`
}

// dayAllowance is what a model call is told about it; nil = the run asks nobody.
func (r *run) dayAllowance() *DayAllowance {
	if r.child != nil || r.isCompensating() {
		return nil
	}
	return &r.budget.Spent.Day
}

// allow adds what people have approved.
func (d *DayAllowance) allow(x ExceededLimit) {
	if d.Date != x.Date {
		*d = DayAllowance{Date: x.Date}
	}
	if x.Limit == pipeline.LimitCostPerDay {
		d.Cost = x.Allowed
		return
	}
	d.Tokens = x.Allowed
}

// interruptForBudget asks people in a turn in which the model was not called: it counts as none.
func (r *run) interruptForBudget(ctx workflow.Context, x ExceededLimit) (end ending, over bool) {
	if l := r.activeStep(); l != nil {
		l.Turns--
	}
	r.budget.Spent.Turns--
	return r.interruptForLimit(ctx, x)
}
