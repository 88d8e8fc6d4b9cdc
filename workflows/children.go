package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// children are the child workflows of one turn or step: subagents or branches. They exist until the
// turn or step ends, and do not go to another execution.
//
// The value knows which children wait for interrupts, passes the interrupts to the thread, and
// passes the replies back (child_interrupt.go has the protocol). In the thread's own workflow it
// also announces the interrupts, and ends the children when all of them wait. In a child it only
// forwards. Only coroutines of the workflow touch it.
type children struct {
	run *run
	// ctx is the context of the turn or step. refusesInterrupts reports whether interrupts are
	// refused; addError stops the turn or step with an error.
	ctx               workflow.Context
	refusesInterrupts func() bool
	addError          func(error)
	// otherWork returns how many activities are under way besides the children. interruptsSoFar
	// returns the interrupts with which the run would end if it ended now, without those of running
	// children.
	otherWork       func() int
	interruptsSoFar func(workflow.Context) *runs.Interrupts

	running    []*runningChild   // in the order of their start
	interrupts []*childInterrupt // of running children and those below them, oldest first
	// reportedIdle is 1 plus the number of replies that this child had received when it last
	// reported to its parent that all its children wait; 0 = it has not reported that.
	reportedIdle int
}

// runningChild is a child workflow that has not ended. The turn or step that started it owns it;
// remove drops it.
type runningChild struct {
	workflow.ChildWorkflowFuture
	ctx    workflow.Context    // of the child: ends with cancel, or with the turn or step
	cancel workflow.CancelFunc // cancels the child; for a branch, all branches of the step
	id     string              // workflow ID
	limits runs.Limits         // which the child may use up
	// isIdle means that all work in the child waits for interrupts, as of the last of the
	// repliesSent replies. A report that the child sent before it received that reply is outdated.
	isIdle      bool
	repliesSent int
}

// childInterrupt has the interrupts of one child, or of a descendant of it. It is open until the
// reply is sent, or until the child is told to end (suspended).
type childInterrupt struct {
	child *runningChild // the direct child through which they came
	// by is the CallID of the descendant that waits. Replies name it, and each workflow forwards
	// them by it.
	by string
	// interrupts has the interrupts, with the state of the waiting child as the first of Suspended.
	// Only the thread's own workflow sets it; in a child it is nil.
	interrupts          *runs.Interrupts
	cannotContinueAsNew bool                     // the waiting child, or one above it, has a program: it cannot end and restart
	ancestors           []runs.AncestorSize      // subagents between it and the thread, with their payload sizes
	announcement        *runs.AnnounceInterrupts // what is still to be announced; nil = it has been
	// replied means that the decisions, or news of a cancel, were sent to the child; suspended that
	// the child was told to end with its interrupts.
	replied   bool
	suspended bool
}

// isOpen reports whether the child still waits for a reply.
func (ci *childInterrupt) isOpen() bool { return !ci.replied && !ci.suspended }

// listen adds the signals of children, and in a child the replies of the parent, to the selector of
// the turn or step.
func (c *children) listen(ctx workflow.Context, changes workflow.Selector) {
	changes.AddReceive(workflow.GetSignalChannel(ctx, runs.SignalInterrupt), func(channel workflow.ReceiveChannel, _ bool) {
		var in runs.InterruptSignal
		channel.Receive(ctx, &in)
		c.receive(ctx, in)
	})
	if c.run.child == nil {
		return
	}
	changes.AddReceive(workflow.GetSignalChannel(ctx, runs.SignalReply), func(channel workflow.ReceiveChannel, _ bool) {
		var in runs.ReplySignal
		channel.Receive(ctx, &in)
		c.forwardReply(ctx, in)
	})
}

// isInterrupted reports whether a child waits for interrupts, or was told to end with them.
func (c *children) isInterrupted() bool {
	return slices.ContainsFunc(c.interrupts, func(ci *childInterrupt) bool { return !ci.replied })
}

// add registers a child that was started with a workflow ID and limits. ctx is the context that
// cancel ends.
func (c *children) add(ctx workflow.Context, id string, limits runs.Limits, child workflow.ChildWorkflowFuture, cancel workflow.CancelFunc) {
	c.running = append(c.running, &runningChild{ChildWorkflowFuture: child, ctx: ctx, cancel: cancel, id: id, limits: limits})
}

// share narrows the limits of a child that starts to its share of what the run and the running
// children leave. n is how many children may start now, the one included.
func (c *children) share(limits runs.Limits, n int) runs.Limits {
	var running []runs.Limits
	for _, rc := range c.running {
		running = append(running, rc.limits)
	}
	return c.run.budget.Remaining(c.run.in.Limits, limits, running, n)
}

// cancelInterrupted cancels the children that wait for interrupts. They end after they have
// recorded the decisions so far.
func (c *children) cancelInterrupted() {
	for _, ci := range c.interrupts {
		if !ci.replied {
			ci.child.cancel()
		}
	}
}

// find returns the running child with a workflow ID; nil = it has ended.
func (c *children) find(id string) *runningChild {
	i := slices.IndexFunc(c.running, func(rc *runningChild) bool { return rc.id == id })
	if i < 0 {
		return nil
	}
	return c.running[i]
}

// isIdle reports whether all work under way waits for interrupts. It is false without children.
func (c *children) isIdle() bool {
	return len(c.running) > 0 && c.otherWork() == 0 && !slices.ContainsFunc(c.running, func(rc *runningChild) bool { return !rc.isIdle })
}

// receive handles a signal of a child. The thread's own workflow takes the interrupts; a child
// forwards the signal to its parent.
func (c *children) receive(ctx workflow.Context, in runs.InterruptSignal) {
	rc := c.find(in.From)
	if rc == nil {
		return // it has ended
	}
	if in.Replies == rc.repliesSent { // otherwise the child sent this before it received the last reply
		rc.isIdle = rc.isIdle || in.Idle
	}
	c.updateSizes(in.Ancestors)
	switch {
	case c.run.child != nil:
		c.forward(ctx, rc, in)
	case in.Cancelled:
		c.replyToCancelled(ctx, in.CallID)
	case in.Interrupts != nil:
		c.addInterrupt(ctx, rc, in)
	}
}

// forward passes the signal of a child on to the parent. It adds the size of this subagent's state,
// and whether this workflow is idle with it. It does not wait for delivery.
func (c *children) forward(ctx workflow.Context, rc *runningChild, in runs.InterruptSignal) {
	if in.Interrupts != nil {
		c.interrupts = append(c.interrupts, &childInterrupt{child: rc, by: in.CallID, cannotContinueAsNew: in.CannotContinueAsNew})
	}
	in.Idle, in.CannotContinueAsNew = c.claimIdleReport(), in.CannotContinueAsNew || c.run.in.Program != ""
	if in.Interrupts != nil || in.Idle {
		in.Ancestors = append(in.Ancestors, c.ownSize(ctx))
	}
	if in.Interrupts != nil || in.Cancelled || len(in.Ancestors) > 0 || in.Idle {
		c.run.signalParent(ctx, in)
	}
}

// ownSize returns how many bytes this subagent's state would take in a payload now, with the
// children that have ended.
func (c *children) ownSize(ctx workflow.Context) runs.AncestorSize {
	return runs.AncestorSize{CallID: c.run.child.CallID, Size: c.run.suspendedSize(c.interruptsSoFar(ctx))}
}

// updateSizes replaces the sizes of subagents between the thread and waiting children by newer
// ones: the state of a subagent grows while children of it wait.
func (c *children) updateSizes(sizes []runs.AncestorSize) {
	for _, now := range sizes {
		for _, ci := range c.interrupts {
			for i := range ci.ancestors {
				if ci.ancestors[i].CallID == now.CallID {
					ci.ancestors[i] = now
				}
			}
		}
	}
}

// claimIdleReport reports whether this child has to tell its parent that it is idle, and notes that
// it does. It is true once for each number of replies received, since a reply sets work under way.
func (c *children) claimIdleReport() bool {
	if c.reportedIdle == c.run.child.replies+1 || !c.isIdle() {
		return false
	}
	c.reportedIdle = c.run.child.replies + 1
	return true
}

// forwardReply passes a reply of the parent on, to the direct child through which the interrupts
// came.
func (c *children) forwardReply(ctx workflow.Context, in runs.ReplySignal) {
	c.run.child.replies++
	i := slices.IndexFunc(c.interrupts, func(ci *childInterrupt) bool { return ci.by == in.To && !ci.replied })
	if i < 0 {
		return // the child that waited has ended
	}
	ci := c.interrupts[i]
	// This workflow was cancelled, or its work has failed, and the thread did not know. A child that
	// ended with its interrupts now would not compensate.
	if in.Suspends && c.refusesInterrupts() {
		in.Suspends, in.Cancelled = false, true
		ci.child.cancel()
	}
	ci.replied = true
	c.reply(ctx, ci, in)
}

// reply sends a reply to the child that waits, and blocks until Temporal has delivered the signal.
func (c *children) reply(ctx workflow.Context, ci *childInterrupt, in runs.ReplySignal) {
	c.onReplyFailed(ctx, ci, c.send(ctx, ci, in).Get(ctx, nil))
}

// send signals a reply to the direct child of ci, without waiting. From now on older reports of the
// child that it is idle are outdated.
func (c *children) send(ctx workflow.Context, ci *childInterrupt, in runs.ReplySignal) workflow.Future {
	in.To = ci.by
	ci.child.repliesSent, ci.child.isIdle = ci.child.repliesSent+1, false
	return ci.child.SignalChildWorkflow(ctx, runs.SignalReply, in)
}

// onReplyFailed stops the turn or step if a reply was not delivered. A child that has ended or is
// cancelled does not need the reply.
func (c *children) onReplyFailed(ctx workflow.Context, ci *childInterrupt, err error) {
	if err != nil && !temporal.IsCanceledError(err) && ctx.Err() == nil && c.find(ci.child.id) != nil {
		c.addError(err)
	}
}

// remove forgets a child that has ended, with its interrupts. If the child ended so that the run
// can end with its interrupts, they become suspended, and answer gets the decisions that the thread
// has taken. Otherwise open interrupts are cancelled.
func (c *children) remove(id string, answer *runs.ToolAnswer) {
	rc := c.find(id)
	c.running = slices.DeleteFunc(c.running, func(other *runningChild) bool { return other == rc })
	c.interrupts = slices.DeleteFunc(c.interrupts, func(ci *childInterrupt) bool {
		switch {
		case ci.child != rc:
			return false
		case ci.interrupts == nil:
		case answer.Suspended != nil && !ci.replied:
			answer.Interrupts.AdoptDecisions(ci.interrupts)
			c.run.interrupts.suspended = append(c.run.interrupts.suspended, ci.interrupts)
			c.run.interrupts.drop(ci.interrupts)
		default:
			c.run.cancelInterrupts(c.ctx, ci.interrupts)
		}
		return true
	})
}

// await blocks until a change, or until a time (zero = without limit), and processes all changes. A
// change is the end of a child or call, a signal, or the resolution of interrupts. It does not end
// with ctx: cancelled children end, which is a change.
//
// The thread's own workflow first announces new interrupts. If all children wait, it tells them to
// end, and time does not count against the run's deadline.
func (c *children) await(ctx workflow.Context, changes workflow.Selector, until time.Time) {
	r := c.run
	if !c.announceAll(ctx) { // interrupts that were held back because the run seemed to end with them
		return
	}
	idle, since := c.isIdle(), workflow.Now(ctx)
	if r.child == nil && idle {
		c.suspend(ctx)
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	ready := func() bool {
		return changes.HasPending() || slices.ContainsFunc(c.interrupts, (*childInterrupt).isResolved)
	}
	if until = c.nextCheck(until); until.IsZero() {
		_ = workflow.Await(disconnected, ready)
	} else {
		_, _ = workflow.AwaitWithTimeout(disconnected, max(until.Sub(workflow.Now(ctx)), 0), ready)
	}
	if idle { // waiting does not count against the deadline
		r.excludeWait(ctx, since)
	}
	for changes.HasPending() {
		changes.Select(ctx)
	}
	_ = c.announceAll(ctx) // addError has the error; the caller checks it
	if r.child != nil && c.claimIdleReport() {
		r.signalParent(ctx, runs.InterruptSignal{Idle: true, Ancestors: []runs.AncestorSize{c.ownSize(ctx)}})
	}
}

// nextCheck returns when time next changes an open interrupt (reminder, escalation, expiry), at the
// latest at the given time; zero = no interrupt is open.
func (c *children) nextCheck(at time.Time) (until time.Time) {
	for _, ci := range c.interrupts {
		if !ci.isOpen() || c.refusesInterrupts() {
			continue
		}
		until = runs.Earlier(until, at)
		if ci.interrupts != nil {
			until = runs.Earlier(until, ci.interrupts.NextTime())
		}
	}
	return until
}

// isResolved reports whether all interrupts are decided and the reply is still to be sent.
func (ci *childInterrupt) isResolved() bool {
	return ci.interrupts != nil && ci.isOpen() && ci.interrupts.IsResolved()
}

// replyResolved replies to children whose interrupts are all decided. It applies expiry first,
// which may decide interrupts before they are announced.
func (c *children) replyResolved(ctx workflow.Context) {
	for _, ci := range c.interrupts {
		if ci.interrupts == nil {
			continue
		}
		if ci.interrupts.ApplyTime(workflow.Now(ctx)); ci.isResolved() {
			c.reply(ctx, ci, runs.ReplySignal{Items: ci.interrupts.OfChild(1).Items})
			ci.replied = true
		}
	}
}
