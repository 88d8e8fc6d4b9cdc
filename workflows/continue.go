package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// Safe points, what a run carries from one execution to the next, and which runs begin in the same
// execution. The payload of continue-as-new is bounded by runs.MaxPayload. So everything that adds
// to it (interrupts, queue, steering) first checks that it fits: an execution whose payload is too
// large could never continue.

// safePoint is reached between turns and steps, when no activity and no child is under way. A
// paused run waits here. A run continues as new here if its history has grown long or a newer
// worker version is current. The error is nil, or continues as new.
func (r *run) safePoint(ctx workflow.Context) error {
	if r.control.paused {
		if err := r.thread.pause(ctx); err != nil {
			return err
		}
	}
	if !r.shouldContinueAsNew(ctx) {
		return nil
	}
	if r.thread != nil {
		r.thread.detachNotifications(ctx)
	}
	_ = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }) // the updates' callers get their results
	if r.child != nil {
		return continueWith(ctx, runs.TypeChild, runs.ChildInput{Input: r.carry(), Child: r.child.Child, Call: r.child.call, Subagents: r.delegation.allowed})
	}
	return continueWith(ctx, runs.TypeRun, r.carry())
}

// pause blocks until the run is resumed or cancelled: it returns nil, and the next step finds the
// cancel. After [runs.Input.ParkDelay] it returns the error that parks the thread, unless a program
// runs.
func (t *thread) pause(ctx workflow.Context) error {
	r, since := t.run, workflow.Now(ctx)
	unpaused := func() bool { return !r.control.paused }
	if r.cannotContinueAsNew() {
		_ = workflow.Await(ctx, unpaused)
		r.excludeWait(ctx, since)
		return nil
	}
	_, _ = workflow.AwaitWithTimeout(ctx, r.in.ParkDelay(), unpaused)
	r.excludeWait(ctx, since)
	t.notifier.detach(ctx, r.interrupts.notifiable())
	if r.control.paused && ctx.Err() == nil {
		return continueWith(ctx, runs.TypeParked, runs.ParkedInput{Run: r.carry()})
	}
	return nil
}

// excludeWait extends the deadline by the time since a wait began: waiting does not count against
// it.
func (r *run) excludeWait(ctx workflow.Context, since time.Time) {
	r.budget.Extend(workflow.Now(ctx).Sub(since))
}

// carry returns the input with which another execution continues the run. newRun is its inverse.
// The input shares memory with the run.
func (r *run) carry() runs.Input {
	next := r.in
	next.Progress = &runs.Progress{
		Execution: r.execution, Turn: r.turn, Paused: r.control.paused,
		LaneSequences: r.log, Budget: r.budget, Steering: r.control.steering,
		Held: r.interrupts.held, Subagents: r.delegation.subagents, Handoffs: r.delegation.handoffs, Repairs: r.repairs, Position: r.pipeline.position,
	}
	if r.child != nil {
		next.Progress.Replies = r.child.replies
	} else {
		next.Queue = r.thread.queued()
	}
	return next
}

// fits reports whether the run could continue as new as it is, with decisions about all its held
// interrupts.
func (r *run) fits() bool { return r.fitsAs(r.carry()) }

// fitsAs is fits for another input than carry returns. Usage and the handoff trail have room of
// their own (see runs.MaxCarried), because they grow without a check.
func (r *run) fitsAs(next runs.Input) bool {
	next.Progress.Usage, next.HandedOver = nil, nil
	body, err := runs.Encode(next) //workflowcheck:ignore the same value gives the same text
	return err == nil && len(body)+r.interrupts.held.Reserve() <= runs.MaxCarried
}

// fits reports whether the thread could continue as new with this queue and this steering.
func (t *thread) fits(queue []runs.Input, steering runs.Steering) bool {
	next := t.run.carry()
	next.Queue, next.Progress.Steering = queue, steering
	return t.run.fitsAs(next)
}

// shouldContinueAsNew reports whether the run is to continue as new at this safe point. A cancelled
// run does not, since it ends soon. Neither does one without a record: its first step carries the
// beginning.
func (r *run) shouldContinueAsNew(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	reason := info.GetContinueAsNewSuggested() || info.GetTargetWorkerDeploymentVersionChanged()
	return reason && ctx.Err() == nil && r.log.HasBegun() && !r.cannotContinueAsNew()
}

// continueAs continues this execution with another AG-UI run, as continue-as-new would continue the
// thread in the next execution: next has its input, interrupts and queue. Nothing of the run before
// stays, except notifications that are not sent. It does not block. The records of both runs name
// the same execution: the log tells them apart by the run, which is part of each lane.
func (t *thread) continueAs(ctx workflow.Context, next runs.Input) {
	before, r := *t.run, t.run
	*r = *newRun(ctx, next) // in place: the notifier and a program refer to it
	r.thread, r.program, r.executionCtx, r.delegation.allowed = t, before.program, before.executionCtx, before.delegation.allowed
	r.interrupts.earlier = before.interrupts.notifiable()
	if before.in.Resume.HasPending() {
		r.interrupts.earlier = append(r.interrupts.earlier, before.in.Resume)
	}
	t.queue, t.successor, t.cancelNext = next.Queue, nil, false
	t.setPhase(ctx, phaseRunning)
	_ = t.upsertSearchAttributes(ctx) // for Temporal's UI only
	if next.Cancelled {
		t.cancel()
	}
}

// youth is how long an execution is young. By default, Temporal delays the first task of the next
// execution until the execution that continues as new is a second old, and Temporal Cloud has no
// setting for it (history.workflowIdReuseMinimalInterval).
const youth = time.Second

// isYoung reports whether the next AG-UI run of the thread begins in this execution, because one
// that continued as new would be delayed. It does not after a program, whose coroutines and signal
// channels may outlive it, nor in an execution that Temporal has cancelled.
func (t *thread) isYoung(ctx workflow.Context) bool {
	return workflow.Now(ctx).Sub(t.began) < youth && t.run.in.Program == "" && !historyIsLong(ctx) && ctx.Err() == nil
}

// cannotContinueAsNew reports whether the execution cannot continue as new, because a program is
// running: a program's position is on its stack.
func (r *run) cannotContinueAsNew() bool {
	return r.in.Program != "" && (r.thread == nil || !r.thread.isEnding())
}

// continueWith returns the error that ends the execution. The next one begins with in, on the
// current worker version.
func continueWith(ctx workflow.Context, workflowType string, in any) error {
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, workflowType, in)
}

// historyIsLong reports whether Temporal suggests to continue as new.
func historyIsLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}
