package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// Only the activities know what a tenant uses in a day. A model call of a run that can ask people
// finds the tenant's soft budget used up, and reports that instead of calling the model. The run
// then asks, as about other soft limits, and repeats the turn when it may. Subagents, branches and
// compensation cannot ask: their calls are made.

// dayAllowance returns how far people have let the run go on its tenant's day; nil = the run cannot
// ask them.
func (r *run) dayAllowance() *runs.DayAllowance {
	if r.child != nil || r.isCompensating() {
		return nil
	}
	return &r.budget.Spent.Day
}

// interruptForBudget asks people in a turn in which the model was not called. The turn does not
// count.
func (r *run) interruptForBudget(ctx workflow.Context, x runs.ExceededLimit) (end ending, over bool) {
	if l := r.activeStep(); l != nil {
		l.Turns--
	}
	r.budget.Spent.Turns--
	return r.interruptForLimit(ctx, x)
}
