package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/runs"
)

// checkRunLimits checks the run's hard limits of tokens and cost. The ending is zero if the
// run has passed none. Compensation has no such limit.
func (r *run) checkRunLimits() ending {
	if r.isCompensating() {
		return ending{}
	}
	if why := r.budget.Overspent(r.in.Limits); why != nil {
		return endingFromFailure(*why)
	}
	return ending{}
}

// use counts the usage of a model call, for the run and for the active step.
func (r *run) use(u runs.Usage) {
	r.budget.Use(u)
	if active := r.activeStep(); active != nil {
		cost, _ := runs.Cost([]runs.Usage{u})
		active.Tokens, active.Cost = active.Tokens+runs.Tokens([]runs.Usage{u}), active.Cost+cost
	}
}

// checkLimits checks the hard limits of the run, and of the agent of the active step. The ending is
// zero if none is passed.
func (r *run) checkLimits() ending {
	if end := r.checkRunLimits(); end.isOver() {
		return end
	}
	return r.checkStepLimits()
}

// checkStepLimits checks the limits of tokens and cost of the active step's agent. If one is
// passed, the step fails, and not the run (ending.ofStep).
func (r *run) checkStepLimits() (end ending) {
	active := r.activeStep()
	switch {
	case active == nil:
		return ending{}
	case active.Limits.Tokens > 0 && active.Tokens > active.Limits.Tokens:
		end = limitEnding(runs.CodeLimitTokens, "the agent reached its limit of %d tokens", active.Limits.Tokens)
	case active.Limits.Cost > 0 && active.Cost > active.Limits.Cost:
		end = limitEnding(runs.CodeLimitCost, "the agent reached its cost limit of %s", agents.Money(active.Limits.Cost))
	default:
		return ending{}
	}
	end.ofStep = true
	return end
}

// mustEnd returns how the run ends without a further step: the run is cancelled, its deadline has
// passed, or it has reached a limit. The ending is zero if none of this is the case.
func (r *run) mustEnd(ctx workflow.Context) ending {
	switch {
	case ctx.Err() != nil:
		return cancelledEnding
	case r.isOverdue(ctx):
		return r.durationEnding()
	}
	return r.checkRunLimits()
}

// needsPrice reports whether models must have a price, because the run or the active step has a
// limit of cost.
func (r *run) needsPrice() bool {
	active := r.activeStep()
	return r.in.Limits.CountsCost() || active != nil && active.Limits.CountsCost()
}
