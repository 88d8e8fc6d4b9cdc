package workflows

import "go.temporal.io/sdk/workflow"

// ThreadParked is thread.parked.v1: what a run becomes that waits for a person, for days if need be. It
// is small and rarely changes, so a worker of any version can hold it, and a run that waited goes on in
// agent.run.v1 on the version of then. It answers whoever addresses the thread like the run itself.
func ThreadParked(ctx workflow.Context, in Parked) (RunResult, error) {
	ctx, cancel := workflow.WithCancel(ctx)
	r := begin(ctx, in.Run)
	r.cancel = func() { r.cancelled = true; cancel() }
	// What updates are judged by comes first: those that wait run as soon as there is a handler.
	r.ended, r.interrupts.afterEnd = in.Waits != nil, in.Waits
	if err := r.listen(ctx); err != nil {
		return RunResult{}, err
	}
	r.notifier.start(ctx)
	if r.interrupts.afterEnd != nil {
		return RunResult{}, r.suspend(ctx, 0)
	}
	if r.interrupts.held != nil {
		return RunResult{}, r.parkedHold(ctx)
	}
	since := workflow.Now(ctx)
	cancelled := workflow.Await(ctx, func() bool { return !r.paused || full(ctx) }) != nil
	r.waited(ctx, since)
	next := r.carry()
	if r.paused && !cancelled {
		return RunResult{}, continueWith(ctx, TypeParked, Parked{Run: next})
	}
	next.Progress.Cancelled = cancelled
	return RunResult{}, continueWith(ctx, TypeRun, next)
}
