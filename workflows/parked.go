package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// ThreadParked is thread.parked.v1: a thread that has waited long, for interrupts or because its
// run is paused. It is small and rarely changes, so that workers of any version can execute it for
// days. It handles the same updates and signals as agent.run.v1. When the wait is over, it
// continues as agent.run.v1, on the worker version that is current by then.
//
// It waits in one of three ways: after the end of a run (in.Interrupts), in a turn (Progress.Held),
// or in a pause.
func ThreadParked(ctx workflow.Context, in runs.ParkedInput) (runs.Result, error) {
	t := newThread(ctx, in.Run)
	ctx = t.withCancel(ctx)
	// The phase is set before listen: buffered updates run as soon as they have a handler, and
	// validators read it.
	if in.Interrupts != nil {
		t.phase, t.run.interrupts.afterEnd = phaseEnded, in.Interrupts
	}
	if err := t.listen(ctx); err != nil {
		return runs.Result{}, err
	}
	t.notifier.start(ctx)
	switch {
	case in.Interrupts != nil:
		if err := t.awaitSuccessor(ctx, 0); err != nil || t.closing {
			return runs.Result{}, err
		}
		t.notifier.stop(ctx)
		return runs.Result{}, continueWith(ctx, runs.TypeRun, *t.takeSuccessor(ctx))
	case t.run.interrupts.held != nil:
		return runs.Result{}, t.awaitHeld(ctx)
	}
	return runs.Result{}, t.awaitUnpaused(ctx)
}

// awaitHeld blocks until all interrupts of the run's turn are decided, or the run is cancelled. The
// error continues as agent.run, or as thread.parked if only the history has grown long.
func (t *thread) awaitHeld(ctx workflow.Context) error {
	r, since := t.run, workflow.Now(ctx)
	set := r.interrupts.held
	for !set.IsResolved() && ctx.Err() == nil && !historyIsLong(ctx) {
		r.awaitHeldUntil(ctx, set.NextTime())
		set.ApplyTime(workflow.Now(ctx))
	}
	cancelled := ctx.Err() != nil
	t.awaitResults(ctx)
	r.excludeWait(ctx, since)
	if !set.IsResolved() && !cancelled {
		return t.parkAgain(ctx)
	}
	return t.unpark(ctx, cancelled)
}

// awaitUnpaused blocks until the run is resumed or cancelled. The error continues as new, as in
// awaitHeld.
func (t *thread) awaitUnpaused(ctx workflow.Context) error {
	r, since := t.run, workflow.Now(ctx)
	cancelled := workflow.Await(ctx, func() bool { return !r.control.paused || historyIsLong(ctx) }) != nil
	r.excludeWait(ctx, since)
	if r.control.paused && !cancelled {
		return t.parkAgain(ctx)
	}
	return t.unpark(ctx, cancelled)
}

// parkAgain returns the error that continues as thread.parked, because the history has grown long.
func (t *thread) parkAgain(ctx workflow.Context) error {
	return continueWith(ctx, runs.TypeParked, runs.ParkedInput{Run: t.run.carry()})
}

// unpark returns the error that continues as agent.run. cancelled makes the next execution begin
// with a cancelled run.
func (t *thread) unpark(ctx workflow.Context, cancelled bool) error {
	next := t.run.carry()
	next.Progress.Cancelled = cancelled
	return continueWith(ctx, runs.TypeRun, next)
}
