package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// Only the activities know what a tenant uses in a day. A model call of a run that can ask
// approvers may find the tenant's soft budget used up. It then reports that instead of calling the
// model. The run asks, as about other soft limits, and repeats the turn after an approval.
// Subagents, branches and compensation cannot ask: their models are called.

// dayAllowance returns how much of the tenant's day approvers have allowed this run to use; nil =
// the run cannot ask them.
func (r *run) dayAllowance() *runs.DayAllowance {
	if r.child != nil || r.isCompensating() {
		return nil
	}
	return &r.budget.Spent.Day
}

// interruptForBudget asks approvers in a turn in which the model was not called. The turn does not
// count. The ending is zero if the run continues, and otherwise has the interrupt.
func (r *run) interruptForBudget(ctx workflow.Context, x runs.ExceededLimit) ending {
	if active := r.activeStep(); active != nil {
		active.Turns--
	}
	r.budget.Spent.Turns--
	return r.interruptForLimit(ctx, x)
}
