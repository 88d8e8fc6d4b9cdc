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
		return failureEnding(*why), true
	}
	return ending{}, false
}

// use counts the usage of a model call, for the run and for the active step.
func (r *run) use(u runs.Usage) {
	r.budget.Use(u)
	if l := r.activeStep(); l != nil {
		cost, _ := runs.Cost([]runs.Usage{u})
		l.Tokens, l.Cost = l.Tokens+runs.Tokens([]runs.Usage{u}), l.Cost+cost
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
	l := r.activeStep()
	switch {
	case l == nil:
		return ending{}, false
	case l.Limits.Tokens > 0 && l.Tokens > l.Limits.Tokens:
		end = limit(runs.CodeLimitTokens, "the agent reached its limit of %d tokens", l.Limits.Tokens)
	case l.Limits.Cost > 0 && l.Cost > l.Limits.Cost:
		end = limit(runs.CodeLimitCost, "the agent reached its cost limit of %s", agents.Money(l.Limits.Cost))
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
	l := r.activeStep()
	return r.in.Limits.CountsCost() || l != nil && l.Limits.CountsCost()
}
