package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A held run does not end when its turn has interrupts: it announces them, waits, and continues the
// turn.

// stepHeld is the ID of the step in which held calls are made. Clients see the name of other tool
// steps.
const stepHeld = "held"

// holdIfFits reports whether a payload has room for the interrupts of a turn. A held run takes
// decisions about them from here on: a decision may arrive before the other calls of the turn have
// been made.
func (r *run) holdIfFits(w *runs.Interrupts) bool {
	if !r.in.Hold {
		return w.Fits(r.in)
	}
	r.interrupts.hold(w)
	return len(w.Calls) <= runs.MaxInterrupts && r.fits()
}

// announceHeld tells readers and the inbox about the interrupts of the turn, unless they are
// resolved already. over tells that the run ends, because that failed.
func (r *run) announceHeld(ctx workflow.Context) (end ending, over bool) {
	if r.child != nil {
		return r.sendInterrupt(ctx)
	}
	if r.interrupts.held.IsResolved() {
		return ending{}, false
	}
	in := runs.AnnounceInterrupts{Step: r.step(r.turn, r.interrupts.held.StepName("hold"), ""), Interrupts: r.interrupts.held}
	var seq uint64
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, "hold"))
	if err := workflow.ExecuteActivity(ctx, runs.ActivityAnnounce, in).Get(ctx, &seq); err != nil {
		return r.failure(ctx, err), true
	}
	r.log.Main, r.log.OpenStep = seq, ""
	r.interrupts.held.After = seq
	r.interrupts.held.NoteOpened()
	return ending{}, false
}

// continueHeld waits until the interrupts of the turn are resolved, and applies the decisions. over
// tells that the run ends. The error is nil except to continue as new.
func (r *run) continueHeld(ctx workflow.Context) (end ending, over bool, err error) {
	if r.child != nil {
		end, over = r.awaitReply(ctx)
		return end, over, nil
	}
	if err := r.awaitHeld(ctx, r.in.ParkPatience()); err != nil {
		return ending{}, false, err
	}
	end, over = r.applyHeld(ctx)
	return end, over, nil
}

// applyHeld applies the decisions about the interrupts of the turn.
func (r *run) applyHeld(ctx workflow.Context) (end ending, over bool) {
	w := r.interrupts.held
	r.interrupts.held = nil // whatever comes of it: steps may go on behind a failure, and compensate behind a cancel
	if ctx.Err() != nil {
		if w.HasDecision() { // what was acknowledged stands in the log, also where nothing comes of it
			_, _ = r.applyDecisions(ctx, w, r.step(r.turn, w.StepName(stepHeld), stepTools))
		}
		r.cancelInterrupts(ctx, w)
		return ending{outcome: runs.OutcomeCancelled}, true
	}
	if r.interrupts.answered = w; w.FailsRun() {
		return ending{outcome: runs.OutcomeError, code: runs.CodeApprovalExpired, message: "nobody decided in time"}, true
	}
	return r.applyDecisions(ctx, w, r.step(r.turn, w.StepName(stepHeld), stepTools))
}

// awaitHeld waits until the interrupts of the turn are resolved, or the run is cancelled. After the
// patience the thread is parked, which is the error. The wait does not count against the deadline.
func (r *run) awaitHeld(ctx workflow.Context, patience time.Duration) error {
	w, since := r.interrupts.held, workflow.Now(ctx)
	late := since.Add(patience)
	for !w.IsResolved() && ctx.Err() == nil {
		r.awaitHeldUntil(ctx, r.waitUntil(w.NextTime(), late))
		now := workflow.Now(ctx)
		w.ApplyTime(now)
		if r.mustStay() || now.Before(late) && !historyIsLong(ctx) {
			continue
		}
		if r.thread.handOverNotifications(ctx); r.thread.awaitResults(ctx) && !w.IsResolved() {
			r.excludeWait(ctx, since)
			return continueWith(ctx, runs.TypeParked, runs.ParkedInput{Run: r.carry()})
		}
	}
	r.excludeWait(ctx, since)
	return nil
}

// waitUntil returns how long to wait in this execution.
func (r *run) waitUntil(next, late time.Time) time.Time {
	if r.mustStay() {
		return next
	}
	return runs.Earlier(next, late)
}

// awaitHeldUntil waits until the interrupts of the turn are resolved, the run is cancelled, or a
// time; zero = for ever.
func (r *run) awaitHeldUntil(ctx workflow.Context, until time.Time) {
	ready := func() bool { return r.interrupts.held.IsResolved() || historyIsLong(ctx) && !r.mustStay() }
	if until.IsZero() {
		_ = workflow.Await(ctx, ready) // it fails when ctx ends
		return
	}
	_, _ = workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), ready)
}

func historyIsLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}
