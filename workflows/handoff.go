package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A handoff is a tool call that hands the thread over to another agent. It is made after all other
// calls of its turn, when these are decided, because they belong to the agent that made them. From
// the next turn on the run belongs to the other agent, with its model, tools and rules. The run's
// counts continue.

// callHandoff makes the handoff of a turn, if there is one and approvers have decided about all
// other calls. It removes the handoff from interrupts. The ending is zero if the run continues.
func (r *run) callHandoff(ctx workflow.Context, step runs.Step, interrupts *runs.Interrupts) ending {
	h := interrupts.Handoff
	if h == nil || interrupts.AsksPeople() {
		return ending{}
	}
	interrupts.Handoff = nil
	c := call{index: h.Index, id: h.CallID, tool: h.Tool}
	if h.Interrupt != nil {
		c = decidedCall(*h.Interrupt, nil)
	}
	c.handoff = &h.To
	return r.callTools(ctx, step, []call{c}, interrupts)
}

// handOver makes another agent the run's own, after the call has taken effect. The tighter limits
// of both agents apply to this run. The next run has the other agent's limits.
func (r *run) handOver(ctx workflow.Context, by runs.HandoffTarget) {
	was, limits := r.in, by.Limits
	limits.Turns, limits.Tokens = min(limits.Turns, was.Limits.Turns), min(limits.Tokens, was.Limits.Tokens)
	limits.Duration = min(limits.Duration, was.Limits.Duration)
	if was.Limits.Cost > 0 && (limits.Cost == 0 || was.Limits.Cost < limits.Cost) {
		limits.Cost = was.Limits.Cost
	}
	r.budget.Extend(limits.Duration - was.Limits.Duration)
	r.in.Agent, r.in.Revision, r.in.Limits = by.Agent, by.Revision, limits
	r.in.OnNewInput, r.in.OnMissingResult = by.OnNewInput, by.OnMissingResult
	r.in.HandedOver = was.HandedOver.Append(was.Agent, by)
	r.delegation.handoffs++
	r.repairs = 0
	_ = workflow.UpsertTypedSearchAttributes(ctx, runs.AttributeAgent.ValueSet(by.Agent)) // for Temporal's UI only
}
