package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// ThreadParked is thread.parked.v1: a thread whose run has waited for long, for an interrupt or
// since it is paused. It is small and rarely changes, so that workers of any version can hold it
// for days. It handles the same updates and signals as agent.run.v1, and the run continues there,
// on the version of then.
func ThreadParked(ctx workflow.Context, in runs.ParkedInput) (runs.Result, error) {
	ctx, cancel := workflow.WithCancel(ctx)
	t := newThread(ctx, in.Run, cancel)
	// Validators read this: updates that wait run as soon as there is a handler.
	if in.Interrupts != nil {
		t.phase, t.run.interrupts.afterEnd = phaseEnded, in.Interrupts
	}
	if err := t.listen(ctx); err != nil {
		return runs.Result{}, err
	}
	t.notifier.start(ctx)
	switch {
	case in.Interrupts != nil:
		return runs.Result{}, t.awaitSuccessor(ctx, 0)
	case t.run.interrupts.held != nil:
		return runs.Result{}, t.awaitHeld(ctx)
	}
	return runs.Result{}, t.awaitUnpaused(ctx)
}

// awaitHeld waits until all interrupts of the run's turn are decided, or the run is cancelled.
func (t *thread) awaitHeld(ctx workflow.Context) error {
	r, since := t.run, workflow.Now(ctx)
	w := r.interrupts.held
	for !w.IsResolved() && ctx.Err() == nil && !historyIsLong(ctx) {
		r.awaitHeldUntil(ctx, w.NextTime())
		w.ApplyTime(workflow.Now(ctx))
	}
	cancelled := ctx.Err() != nil
	t.awaitResults(ctx)
	r.excludeWait(ctx, since)
	return t.unpark(ctx, !w.IsResolved() && !cancelled, cancelled)
}

// awaitUnpaused waits until the run is to continue, or is cancelled.
func (t *thread) awaitUnpaused(ctx workflow.Context) error {
	r, since := t.run, workflow.Now(ctx)
	cancelled := workflow.Await(ctx, func() bool { return !r.control.paused || historyIsLong(ctx) }) != nil
	r.excludeWait(ctx, since)
	return t.unpark(ctx, r.control.paused && !cancelled, cancelled)
}

// unpark continues the run, or the wait where only the history has grown long.
func (t *thread) unpark(ctx workflow.Context, waits, cancelled bool) error {
	next := t.run.carry()
	if waits {
		return continueWith(ctx, runs.TypeParked, runs.ParkedInput{Run: next})
	}
	next.Progress.Cancelled = cancelled
	return continueWith(ctx, runs.TypeRun, next)
}
