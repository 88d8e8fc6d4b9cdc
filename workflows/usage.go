package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
)

// checkRunLimits checks the run's hard limits of tokens and cost. over reports that the run has
// passed one. Compensation has no such limit.
func (r *run) checkRunLimits() (end ending, over bool) {
	if r.isCompensating() {
		return ending{}, false
	}
	if why := r.budget.Overspent(r.in.Limits); why != nil {
		return endingFromFailure(*why), true
	}
	return ending{}, false
}

// use counts the usage of a model call, for the run and for the active step.
func (r *run) use(u runs.Usage) {
	r.budget.Use(u)
	if active := r.activeStep(); active != nil {
		cost, _ := runs.Cost([]runs.Usage{u})
		active.Tokens, active.Cost = active.Tokens+runs.Tokens([]runs.Usage{u}), active.Cost+cost
	}
}

// checkLimits checks the hard limits of the run, and of the agent of the active step. over reports
// that one is passed.
func (r *run) checkLimits() (end ending, over bool) {
	if end, over = r.checkRunLimits(); over {
		return end, true
	}
	return r.checkStepLimits()
}

// checkStepLimits checks the limits of tokens and cost of the active step's agent. If one is
// passed, the step fails, and not the run (ending.ofStep).
func (r *run) checkStepLimits() (end ending, over bool) {
	active := r.activeStep()
	switch {
	case active == nil:
		return ending{}, false
	case active.Limits.Tokens > 0 && active.Tokens > active.Limits.Tokens:
		end = limitEnding(runs.CodeLimitTokens, "the agent reached its limit of %d tokens", active.Limits.Tokens)
	case active.Limits.Cost > 0 && active.Cost > active.Limits.Cost:
		end = limitEnding(runs.CodeLimitCost, "the agent reached its cost limit of %s", agents.Money(active.Limits.Cost))
	default:
		return ending{}, false
	}
	end.ofStep = true
	return end, true
}

// mustEnd reports whether no further step begins: the run is cancelled, its deadline has passed,
// or it has reached a limit.
func (r *run) mustEnd(ctx workflow.Context) (end ending, over bool) {
	switch {
	case ctx.Err() != nil:
		return ending{outcome: runs.OutcomeCancelled}, true
	case r.overdue(ctx):
		return r.durationEnding(), true
	}
	return r.checkRunLimits()
}

// priced reports whether models must have a price, because the run or the active step has a limit
// of cost.
func (r *run) priced() bool {
	active := r.activeStep()
	return r.in.Limits.CountsCost() || active != nil && active.Limits.CountsCost()
}
