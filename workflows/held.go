package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

// A run that its client asked to hold does not end when calls of its turn wait, for the client or a
// person: it says so, waits, and goes on with the turn.

// stepHeld are the calls of a turn that were waited for; what clients see of the step is named like that
// of the others.
const stepHeld = "held"

// round tells the steps of one wait in a turn from those of the others.
func (w *Interrupts) round(step string) string {
	if w.Round == 0 {
		return step
	}
	return fmt.Sprintf("%s-%d", step, w.Round)
}

// holdIfFits tells whether what a turn waits for can be carried on. A run that holds has it from here on, before
// the other calls of the turn are made: an answer may come early.
func (r *run) holdIfFits(w *Interrupts) bool {
	if !r.in.Hold {
		return w.fits(r.in)
	}
	r.interrupts.hold(w)
	return len(w.Calls) <= MaxInterrupts && r.fits()
}

// announceHeld tells readers what the run waits for, unless that is answered by now. over tells that the run
// ends, since it could not.
func (r *run) announceHeld(ctx workflow.Context) (end ending, over bool) {
	if r.child != nil {
		return r.sendInterrupt(ctx)
	}
	if r.interrupts.held.isResolved() {
		return ending{}, false
	}
	in := AnnounceInterrupts{Step: r.step(r.turn, r.interrupts.held.round("hold"), ""), Interrupts: r.interrupts.held}
	var seq uint64
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, "hold"))
	if err := workflow.ExecuteActivity(ctx, ActivityAnnounce, in).Get(ctx, &seq); err != nil {
		return r.failure(ctx, err), true
	}
	r.log.Main, r.log.OpenStep = seq, ""
	r.interrupts.held.After = seq
	r.interrupts.held.noteOpened()
	return ending{}, false
}

// continueHeld waits until everything is answered, and does what was decided. over tells that the run ends
// with it. It fails only to continue as new.
func (r *run) continueHeld(ctx workflow.Context) (end ending, over bool, err error) {
	if r.child != nil {
		end, over = r.awaitReply(ctx)
		return end, over, nil
	}
	if err := r.awaitHeld(ctx, r.in.parkAfter()); err != nil {
		return ending{}, false, err
	}
	end, over = r.applyHeld(ctx)
	return end, over, nil
}

// applyHeld does what was decided about the calls that were waited for.
func (r *run) applyHeld(ctx workflow.Context) (end ending, over bool) {
	w := r.interrupts.held
	r.interrupts.held = nil // whatever comes of it: steps may go on behind a failure, and compensate behind a cancel
	if ctx.Err() != nil {
		if w.hasDecision() { // what was acknowledged stands in the log, also where nothing comes of it
			_, _ = r.applyDecisions(ctx, w, r.step(r.turn, w.round(stepHeld), stepTools))
		}
		r.cancelInterrupts(ctx, w)
		return ending{outcome: OutcomeCancelled}, true
	}
	if r.interrupts.answered = w; w.failsRun() {
		return ending{outcome: OutcomeError, code: CodeApprovalExpired, message: "nobody decided in time"}, true
	}
	return r.applyDecisions(ctx, w, r.step(r.turn, w.round(stepHeld), stepTools))
}

// awaitHeld waits until everything is answered or the run is cancelled. Where it takes longer than the
// patience, the run is parked: that is the error. The wait is no time of the run's.
func (r *run) awaitHeld(ctx workflow.Context, patience time.Duration) error {
	w, since := r.interrupts.held, workflow.Now(ctx)
	late := since.Add(patience)
	for !w.isResolved() && ctx.Err() == nil {
		r.awaitHeldUntil(ctx, r.waitUntil(w.next(), late))
		now := workflow.Now(ctx)
		w.applyTime(now)
		if r.mustStay() || now.Before(late) && !historyIsLong(ctx) {
			continue
		}
		if r.thread.notifier.handOver(ctx, r.interrupts.past()); r.thread.awaitResults(ctx) && !w.isResolved() {
			r.excludeWait(ctx, since)
			return continueWith(ctx, TypeParked, ParkedInput{Run: r.carry()})
		}
	}
	r.excludeWait(ctx, since)
	return nil
}

// waitUntil is until when to wait here.
func (r *run) waitUntil(next, late time.Time) time.Time {
	if r.mustStay() {
		return next
	}
	return earlier(next, late)
}

// awaitHeldUntil waits until everything is answered, or some time, or the run is cancelled; zero = for ever.
func (r *run) awaitHeldUntil(ctx workflow.Context, until time.Time) {
	ready := func() bool { return r.interrupts.held.isResolved() || historyIsLong(ctx) && !r.mustStay() }
	if until.IsZero() {
		_ = workflow.Await(ctx, ready) // it fails when ctx ends
		return
	}
	_, _ = workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), ready)
}

func historyIsLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// reserve is what decisions are going to take of what is carried on.
func (w *Interrupts) reserve() int {
	if w == nil {
		return 0
	}
	room := w.maxNews()
	for _, c := range w.Calls {
		if c.Decision == nil {
			room += maxDecision + c.Approval.maxVotes()*maxVote
		}
	}
	return room
}
