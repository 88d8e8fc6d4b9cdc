package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// rest is the safe point before a turn: here a paused run waits, and here it may continue as new,
// when its history grows long, a newer version of the worker is there or the wait grows long. Nothing
// is under way here, so nothing is repeated or lost.
func (r *run) rest(ctx workflow.Context) error {
	if r.paused {
		since := workflow.Now(ctx)
		if r.stays() {
			_ = workflow.Await(ctx, func() bool { return !r.paused })
		} else {
			_, _ = workflow.AwaitWithTimeout(ctx, r.in.parkAfter(), func() bool { return !r.paused }) // cancelled: the next step finds out
		}
		r.waited(ctx, since)
		if r.paused && r.stays() {
			return nil // cancelled
		}
		if r.notifier.handOver(ctx, r.interrupts.past()); r.paused && ctx.Err() == nil {
			return continueWith(ctx, TypeParked, Parked{Run: r.carry()})
		}
	}
	if !r.mayContinue(ctx) {
		return nil
	}
	r.notifier.handOver(ctx, r.interrupts.past())
	_ = workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }) // cancelled: so are they
	if r.branch != nil {
		return continueWith(ctx, TypeBranch, BranchInput{RunInput: r.carry(), Branch: *r.branch, Call: *r.call, Subagents: r.mayDelegate})
	}
	return continueWith(ctx, TypeRun, r.carry())
}

// waited moves the deadline: time spent waiting does not count against it.
func (r *run) waited(ctx workflow.Context, since time.Time) {
	r.budget.extend(workflow.Now(ctx).Sub(since))
}

func (in RunInput) parkAfter() time.Duration {
	if in.ParkAfter == 0 {
		return DefaultParkAfter
	}
	return in.ParkAfter
}

// carry is what another execution needs in order to go on with the run.
func (r *run) carry() RunInput { return r.carryWith(r.queue, r.steering) }

// carryWith is carry with these runs that wait and this that was said.
func (r *run) carryWith(queue []RunInput, steering Steering) RunInput {
	next := r.in
	next.Queue = queue
	next.Progress = &Progress{
		Execution: r.execution, Turn: r.turn, Paused: r.paused,
		Positions: r.log, Budget: r.budget, Steering: steering,
		Held: r.interrupts.held, Subagents: r.subagents, Handoffs: r.handoffs, Replies: r.replies, Walk: r.walk,
	}
	return next
}

// maxCarried bounds, in bytes, what is handed on without the usage, which grows by itself up to 4 KiB, and how the
// thread has come to its agent.
const maxCarried = MaxPayload - 4<<10 - maxHanded

// fits tells whether so much could be handed on: what continues as new is one payload, and an execution
// that cannot continue would try for ever.
func (r *run) fits(queue []RunInput, steering Steering) bool {
	next := r.carryWith(queue, steering)
	next.Progress.Usage, next.Handed = nil, nil
	body, err := encode(next) //workflowcheck:ignore the same value gives the same text
	return err == nil && len(body)+r.interrupts.held.reserve() <= maxCarried
}

// mayContinue tells whether to continue as new: there is a reason, and nothing that is more urgent.
func (r *run) mayContinue(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	reason := info.GetContinueAsNewSuggested() || info.GetTargetWorkerDeploymentVersionChanged()
	return reason && ctx.Err() == nil && r.log.begun() && !r.stays()
}

// stays tells whether the execution cannot be followed by another one: a program is in the middle of its code.
func (r *run) stays() bool { return r.in.Program != "" && !r.ended }

// next is the run that waits longest, with the others behind it; nil = none waits.
func (r *run) next() *RunInput {
	if len(r.queue) == 0 {
		return nil
	}
	next := r.in.Handed.asked(r.queue[0])
	next.Queue = r.queue[1:]
	return &next
}

// continueWith ends the execution; another one goes on with in, on the current version of the worker.
func continueWith(ctx workflow.Context, workflowType string, in any) error {
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, workflowType, in)
}

// rename gives the execution of a run that has waited in a queue its own search attributes: it began
// with those of the run before it.
func (r *run) rename(ctx workflow.Context) error {
	if r.in.Token == "" || r.log.begun() {
		return nil
	}
	return workflow.UpsertTypedSearchAttributes(ctx, AttributeAgent.ValueSet(r.in.Agent), AttributeRun.ValueSet(r.in.Token))
}

// Search attributes, for Temporal's own UI. They decide nothing.
var (
	AttributeTenant = temporal.NewSearchAttributeKeyKeyword("PerdureTenant")
	AttributeAgent  = temporal.NewSearchAttributeKeyKeyword("PerdureAgent")
	AttributeRun    = temporal.NewSearchAttributeKeyKeyword("PerdureRun")
)
