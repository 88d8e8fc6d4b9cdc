package workflows

import "go.temporal.io/sdk/workflow"

// applyResumed does what was decided about the calls of the run before. over tells that the run ends with it.
func (r *run) applyResumed(ctx workflow.Context) (end ending, over bool) {
	w := r.in.Resume
	if w == nil || r.log.begun() {
		return ending{}, false
	}
	if w.failsRun() {
		return ending{outcome: OutcomeError, code: CodeApprovalExpired, message: "nobody decided in time"}, true
	}
	if len(w.calls()) == 0 && w.Handoff == nil {
		return ending{}, false
	}
	turn := r.turn
	if r.in.Hold && r.child == nil { // what these calls ask is asked in no turn of this run
		r.turn = 0
	}
	if end, over = r.applyDecisions(ctx, w, r.step(0, stepTools, stepTools)); r.interrupts.held == nil {
		r.turn = turn
	}
	return end, over
}

// applyDecisions does what was decided about calls. over tells that the run ends with it.
func (r *run) applyDecisions(ctx workflow.Context, w *Interrupts, step Step) (end ending, over bool) {
	if w.Exceeded != nil {
		return r.applyLimitDecision(ctx, w, step)
	}
	waits := r.waitsOf(ctx, ModelAnswer{MessageID: w.MessageID})
	waits.Round, waits.Handoff = w.Round+1, w.decidedHandoff()
	calls := toolCalls{messageID: w.MessageID, calls: w.calls(), step: step}
	if end, over = r.callTools(ctx, calls, waits); over {
		return end, true
	}
	if end, over = r.callHandoff(ctx, calls, waits); over {
		return end, true
	}
	switch {
	case w.hasMissedDeadline(r.activeStep()):
		return ending{outcome: OutcomeError, code: timeout.Code, message: timeout.Message}, true
	case len(waits.Calls) == 0:
		return ending{}, false
	case r.interrupts.held != nil:
		return r.announceHeld(ctx)
	}
	return ending{outcome: waits.outcome(), waits: waits}, true
}
