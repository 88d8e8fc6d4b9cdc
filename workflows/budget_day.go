package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// What a tenant uses in a day is known where models are called, not here. A call of a run that may ask people finds its
// tenant's soft budget used up, and says so instead of calling the model; then the run asks, as about other soft limits,
// and takes the turn again when it may. Calls of those that cannot ask go through: of subagents and branches, before which a pipeline asks, and of what
// compensates for what was done.

// dayAllowance is what a model call is told about it; nil = the run asks nobody.
func (r *run) dayAllowance() *runs.DayAllowance {
	if r.child != nil || r.isCompensating() {
		return nil
	}
	return &r.budget.Spent.Day
}

// interruptForBudget asks people in a turn in which the model was not called: it counts as none.
func (r *run) interruptForBudget(ctx workflow.Context, x runs.ExceededLimit) (end ending, over bool) {
	if l := r.activeStep(); l != nil {
		l.Turns--
	}
	r.budget.Spent.Turns--
	return r.interruptForLimit(ctx, x)
}
