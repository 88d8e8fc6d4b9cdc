package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A held run does not end when its turn has interrupts: it announces them, waits, and continues the
// turn. The AG-UI run stays open on the wire. Runs of children are always held: their interrupts go
// to the thread (child_interrupt.go).

// stepHeld is the ID of the step in which decided calls of a held turn are made. Clients see the
// name of other tool steps.
const stepHeld = "held"

// admitInterrupts reports whether a payload has room for the interrupts of a turn. In a held run it
// also makes them the interrupts of the turn, also while calls of the turn are under way: a
// decision may arrive before they end. Interrupts of suspended subagents end the run, so they are
// not held.
func (r *run) admitInterrupts(set *runs.Interrupts) bool {
	if !r.in.Hold || len(set.Suspended) > 0 {
		return set.Fits(r.in)
	}
	r.interrupts.hold(set)
	return len(set.Items) <= runs.MaxInterrupts && r.fits()
}

// waitFor makes the run wait for interrupts: a held run announces them, another one ends with them. A
// run that stops drops them, unless the log has that end. The ending is zero if the run waits.
func (r *run) waitFor(ctx workflow.Context, set *runs.Interrupts) ending {
	isHeld := r.interrupts.held != nil && len(set.Suspended) == 0
	switch {
	case r.isStopping(ctx) && (isHeld || r.child != nil || !r.isLogAhead(ctx, nil)): // held ones are announced between tasks: nobody has learned of them
		r.interrupts.unhold()
		return r.mustEnd(ctx)
	case isHeld:
		return r.announceHeld(ctx)
	}
	r.interrupts.held = nil // suspended subagents end a held run, too: only another run restarts them
	return withInterrupts(set)
}

// announceHeld announces the interrupts of the turn to readers and the inbox (interrupt.announce),
// unless decisions for all of them have arrived. A child signals them to the thread instead. The
// ending is zero unless that failed.
func (r *run) announceHeld(ctx workflow.Context) ending {
	if r.child != nil {
		return r.sendInterrupt(ctx)
	}
	if r.interrupts.held.IsResolved() {
		return ending{}
	}
	in := runs.AnnounceInterrupts{Step: r.step(r.turn, r.interrupts.held.StepName("hold"), ""), Interrupts: r.interrupts.held}
	var seq uint64
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, "hold"))
	if err := workflow.ExecuteActivity(ctx, runs.ActivityAnnounce, in).Get(ctx, &seq); err != nil {
		return r.endingFromError(ctx, err)
	}
	r.log.NoteRecord(seq, "")
	r.interrupts.held.AnnouncedBy = seq
	r.interrupts.held.NoteOpened()
	return ending{}
}

// continueHeld blocks until the interrupts of the turn are resolved, and applies the decisions.
// Then interrupts.held is nil, or has the next round: interrupts that the decided calls have
// brought. The ending is zero if the run continues. The error is nil except to continue as
// thread.parked.
func (r *run) continueHeld(ctx workflow.Context) (ending, error) {
	if r.child != nil {
		return r.awaitReply(ctx), nil
	}
	if err := r.awaitHeld(ctx, r.in.ParkDelay()); err != nil {
		return ending{}, err
	}
	return r.applyHeld(ctx), nil
}

// applyHeld applies the decisions about the interrupts of the turn. In a cancelled run it only
// records them, and cancels the other interrupts, unless a lost workflow task has applied them. The
// ending is zero if the run or the active step continues.
func (r *run) applyHeld(ctx workflow.Context) ending {
	set := r.interrupts.held
	r.interrupts.held = nil // in every case: a pipeline may continue after a failure or a cancel
	if ctx.Err() != nil && !(set.IsResolved() && set.FailsRun() && r.takesOver(ctx)) {
		if set.HasDecision() { // acknowledged decisions are recorded, though they take no effect
			end := r.applyDecisions(ctx, set, r.step(r.turn, set.StepName(stepHeld), stepTools))
			if end.outcome != runs.OutcomeCancelled && set.IsResolved() && r.isStopping(ctx) { // the log has all calls
				r.interrupts.answered = set
				return end
			}
		}
		r.cancelInterrupts(ctx, set)
		return cancelledEnding
	}
	r.interrupts.answered = set
	if set.FailsRun() {
		return expiredEnding
	}
	return r.applyDecisions(ctx, set, r.step(r.turn, set.StepName(stepHeld), stepTools))
}

// awaitHeld blocks until the interrupts of the turn are resolved, or the run is cancelled: then it
// returns nil. After parkDelay, or when the history grows long, it returns the error that continues
// as thread.parked. The wait does not count against the deadline.
func (r *run) awaitHeld(ctx workflow.Context, parkDelay time.Duration) error {
	set, since := r.interrupts.held, workflow.Now(ctx)
	parkAt := since.Add(parkDelay)
	for !set.IsResolved() && ctx.Err() == nil {
		r.awaitHeldUntil(ctx, r.waitUntil(set.NextTime(), parkAt))
		now := workflow.Now(ctx)
		set.ApplyTime(now)
		if r.cannotContinueAsNew() || now.Before(parkAt) && !historyIsLong(ctx) {
			continue
		}
		// Before continue-as-new: notifications get workflows of their own, and signaled results
		// must be in the log.
		if r.thread.detachNotifications(ctx); r.thread.awaitResults(ctx) && !set.IsResolved() {
			r.excludeWait(ctx, since)
			return continueWith(ctx, runs.TypeParked, runs.ParkedInput{Run: r.carry()})
		}
	}
	r.excludeWait(ctx, since)
	return nil
}

// waitUntil returns when this execution stops waiting: at next (zero = never), and at parkAt at the
// latest if it can continue as new.
func (r *run) waitUntil(next, parkAt time.Time) time.Time {
	if r.cannotContinueAsNew() {
		return next
	}
	return runs.Earlier(next, parkAt)
}

// awaitHeldUntil blocks until the interrupts of the turn are resolved, the run is cancelled, the
// history has grown long, or a time; zero = without limit.
func (r *run) awaitHeldUntil(ctx workflow.Context, until time.Time) {
	ready := func() bool { return r.interrupts.held.IsResolved() || historyIsLong(ctx) && !r.cannotContinueAsNew() }
	if until.IsZero() {
		_ = workflow.Await(ctx, ready) // it fails when ctx ends
		return
	}
	_, _ = workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), ready)
}
