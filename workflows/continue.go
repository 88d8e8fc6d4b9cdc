package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// safePoint is reached between turns and steps, when nothing is under way: a paused run waits here,
// and a run continues as new here if its history has grown long or a newer worker version is
// current.
func (r *run) safePoint(ctx workflow.Context) error {
	if r.control.paused {
		if err := r.thread.pause(ctx); err != nil {
			return err
		}
	}
	if !r.mayContinue(ctx) {
		return nil
	}
	if r.thread != nil {
		r.thread.handOverNotifications(ctx)
	}
	_ = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }) // cancelled: so are they
	if r.child != nil {
		return continueWith(ctx, runs.TypeChild, runs.ChildInput{Input: r.carry(), Child: r.child.Child, Call: r.child.call, Subagents: r.delegation.allowed})
	}
	return continueWith(ctx, runs.TypeRun, r.carry())
}

// pause waits until the run is to continue, or is cancelled: then the next step finds out. A long
// pause parks the thread, which is the error, unless a program runs.
func (t *thread) pause(ctx workflow.Context) error {
	r, since := t.run, workflow.Now(ctx)
	unpaused := func() bool { return !r.control.paused }
	if r.mustStay() {
		_ = workflow.Await(ctx, unpaused)
		r.excludeWait(ctx, since)
		return nil
	}
	_, _ = workflow.AwaitWithTimeout(ctx, r.in.ParkPatience(), unpaused)
	r.excludeWait(ctx, since)
	t.notifier.handOver(ctx, r.interrupts.notifiable())
	if r.control.paused && ctx.Err() == nil {
		return continueWith(ctx, runs.TypeParked, runs.ParkedInput{Run: r.carry()})
	}
	return nil
}

// excludeWait moves the deadline: time spent waiting does not count against it.
func (r *run) excludeWait(ctx workflow.Context, since time.Time) {
	r.budget.Extend(workflow.Now(ctx).Sub(since))
}

// carry returns what another execution needs in order to continue the run.
func (r *run) carry() runs.Input {
	next := r.in
	next.Progress = &runs.Progress{
		Execution: r.execution, Turn: r.turn, Paused: r.control.paused,
		Positions: r.log, Budget: r.budget, Steering: r.control.steering,
		Held: r.interrupts.held, Subagents: r.delegation.subagents, Handoffs: r.delegation.handoffs, Position: r.pipeline.position,
	}
	if r.child != nil {
		next.Progress.Replies = r.child.replies
	} else {
		next.Queue = r.thread.queued()
	}
	return next
}

// fits reports whether the run could be carried on as it is: what continues as new is one payload,
// and an execution that cannot continue would try for ever.
func (r *run) fits() bool { return r.fitsAs(r.carry()) }

// fitsAs is fits for the run as it would be carried on.
func (r *run) fitsAs(next runs.Input) bool {
	next.Progress.Usage, next.HandedOver = nil, nil
	body, err := runs.Encode(next) //workflowcheck:ignore the same value gives the same text
	return err == nil && len(body)+r.interrupts.held.Reserve() <= runs.MaxCarried
}

// fits reports whether the thread could be carried on with these runs in the queue and this
// steering.
func (t *thread) fits(queue []runs.Input, steering runs.Steering) bool {
	next := t.run.carry()
	next.Queue, next.Progress.Steering = queue, steering
	return t.run.fitsAs(next)
}

// mayContinue reports whether to continue as new.
func (r *run) mayContinue(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	reason := info.GetContinueAsNewSuggested() || info.GetTargetWorkerDeploymentVersionChanged()
	return reason && ctx.Err() == nil && r.log.HasBegun() && !r.mustStay()
}

// mustStay reports whether the execution cannot continue as new, because a program is running.
func (r *run) mustStay() bool {
	return r.in.Program != "" && (r.thread == nil || !r.thread.hasEnded())
}

// continueWith ends the execution. The next one starts with in, on the current worker version.
func continueWith(ctx workflow.Context, workflowType string, in any) error {
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, workflowType, in)
}
