package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// applyResumed applies the decisions about the interrupts of the run before, at the beginning of a
// run without a pipeline (reopen does it for pipelines). The ending is zero if the run continues.
func (r *run) applyResumed(ctx workflow.Context) ending {
	set := r.in.Resume
	if set == nil || r.log.HasBegun() {
		return ending{}
	}
	if set.FailsRun() {
		return expiredEnding
	}
	if len(decidedCalls(set)) == 0 && set.Handoff == nil {
		return ending{}
	}
	turn := r.turn
	if r.in.Hold && r.child == nil { // questions of these calls are held as turn 0: the run has had no turn yet
		r.turn = 0
	}
	end := r.applyDecisions(ctx, set, r.step(0, stepTools, stepTools))
	if r.interrupts.held == nil {
		r.turn = turn
	}
	return end
}

// applyDecisions makes or answers the decided calls, and the handoff of their turn. Their tools and
// subagents may have further interrupts: a held run announces them as the next round of the turn,
// and another run ends with them. The ending is zero if the run continues.
func (r *run) applyDecisions(ctx workflow.Context, set *runs.Interrupts, step runs.Step) ending {
	if set.Exceeded != nil {
		return r.applyLimitDecision(ctx, set, step)
	}
	interrupts := r.interruptsOfAnswer(ctx, runs.ModelAnswer{MessageID: set.MessageID})
	interrupts.Round, interrupts.Handoff = set.Round+1, set.DecidedHandoff()
	if end := r.callTools(ctx, step, decidedCalls(set), interrupts); end.isOver() {
		return end
	}
	if end := r.callHandoff(ctx, step, interrupts); end.isOver() {
		return end
	}
	switch {
	case set.HasMissedDeadline(r.activeStep()):
		return endingFromFailure(timeout)
	case len(interrupts.Items) == 0:
		return ending{}
	}
	return r.waitFor(ctx, interrupts)
}
