package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// applyResumed applies the decisions about the interrupts of the run before, at the beginning of a
// run without a pipeline (reopen does it for pipelines). over reports that the run ends.
func (r *run) applyResumed(ctx workflow.Context) (end ending, over bool) {
	set := r.in.Resume
	if set == nil || r.log.HasBegun() {
		return ending{}, false
	}
	if set.FailsRun() {
		return ending{outcome: runs.OutcomeError, code: runs.CodeApprovalExpired, message: "the interrupt expired without a decision"}, true
	}
	if len(decidedCalls(set)) == 0 && set.Handoff == nil {
		return ending{}, false
	}
	turn := r.turn
	if r.in.Hold && r.child == nil { // questions of these calls are held as turn 0: the run has had no turn yet
		r.turn = 0
	}
	if end, over = r.applyDecisions(ctx, set, r.step(0, stepTools, stepTools)); r.interrupts.held == nil {
		r.turn = turn
	}
	return end, over
}

// applyDecisions makes or answers the decided calls, and the handoff of their turn. Their tools and
// subagents may have further interrupts: a held run announces them as the next round of the turn,
// and another run ends with them. over reports that the run or step ends.
func (r *run) applyDecisions(ctx workflow.Context, set *runs.Interrupts, step runs.Step) (end ending, over bool) {
	if set.Exceeded != nil {
		return r.applyLimitDecision(ctx, set, step)
	}
	interrupts := r.interruptsOfAnswer(ctx, runs.ModelAnswer{MessageID: set.MessageID})
	interrupts.Round, interrupts.Handoff = set.Round+1, set.DecidedHandoff()
	calls := toolCalls{messageID: set.MessageID, calls: decidedCalls(set), step: step}
	if end, over = r.callTools(ctx, calls, interrupts); over {
		return end, true
	}
	if end, over = r.callHandoff(ctx, calls, interrupts); over {
		return end, true
	}
	switch {
	case set.HasMissedDeadline(r.activeStep()):
		return ending{outcome: runs.OutcomeError, code: timeout.Code, message: timeout.Message}, true
	case len(interrupts.Items) == 0:
		return ending{}, false
	case r.interrupts.held != nil:
		return r.announceHeld(ctx)
	}
	return ending{outcome: interrupts.Outcome(), interrupts: interrupts}, true
}
