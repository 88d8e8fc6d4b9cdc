package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// children are the child workflows of a turn or a step that are under way: subagents or branches.
// It knows which of them wait, and passes their interrupts to the thread and the replies back
// (child_interrupt.go). Only coroutines of the workflow touch it.
type children struct {
	run *run
	// ctx is that of the turn or the step. stopped tells that no interrupts are taken any more;
	// fails stops the turn or step.
	ctx     workflow.Context
	stopped func() bool
	fails   func(error)
	// otherWork is how many activities are under way besides, interruptsSoFar what the run would
	// end with already.
	otherWork       func() int
	interruptsSoFar func(workflow.Context) *runs.Interrupts

	running    []*runningChild
	interrupts []*childInterrupt
	// reportedIdle is the number of replies received when the parent was told that all children
	// wait, plus 1; 0 = it was never told.
	reportedIdle int
}

// runningChild is a child workflow that has not ended.
type runningChild struct {
	workflow.ChildWorkflowFuture
	ctx    workflow.Context // ends with cancel
	cancel workflow.CancelFunc
	id     string // workflow ID
	// isIdle tells that nothing is under way in the child but waiting, as of the last of the
	// repliesSent to it.
	isIdle      bool
	repliesSent int
}

// childInterrupt are the interrupts of a child, or of one below it.
type childInterrupt struct {
	child *runningChild // the direct child through which they came
	by    string        // CallID of the one that waits
	// waits has them, with the state of the one that waits as the first of Suspended. It is nil
	// except in the thread.
	waits        *runs.Interrupts
	mustStay     bool                     // the one that waits cannot end and begin again
	between      []runs.AncestorSize      // subagents between it and the thread
	announcement *runs.AnnounceInterrupts // nil = readers and the inbox know them
	// replied tells that it has its answers, suspended that it was told to end.
	replied   bool
	suspended bool
}

func (a *childInterrupt) isOpen() bool { return !a.replied && !a.suspended }

// listen adds the signals of children, and the replies of the parent, to the selector.
func (c *children) listen(ctx workflow.Context, changes workflow.Selector) {
	changes.AddReceive(workflow.GetSignalChannel(ctx, runs.SignalInterrupt), func(said workflow.ReceiveChannel, _ bool) {
		var in runs.InterruptSignal
		said.Receive(ctx, &in)
		c.receive(ctx, in)
	})
	if c.run.child == nil {
		return
	}
	changes.AddReceive(workflow.GetSignalChannel(ctx, runs.SignalReply), func(said workflow.ReceiveChannel, _ bool) {
		var in runs.ReplySignal
		said.Receive(ctx, &in)
		c.forwardReply(ctx, in)
	})
}

// isInterrupted reports whether a child waits for interrupts.
func (c *children) isInterrupted() bool {
	return slices.ContainsFunc(c.interrupts, func(a *childInterrupt) bool { return !a.replied })
}

func (c *children) add(ctx workflow.Context, id string, child workflow.ChildWorkflowFuture, cancel workflow.CancelFunc) {
	c.running = append(c.running, &runningChild{ChildWorkflowFuture: child, ctx: ctx, cancel: cancel, id: id})
}

// cancelInterrupted cancels the children that wait for interrupts.
func (c *children) cancelInterrupted() {
	for _, a := range c.interrupts {
		if !a.replied {
			a.child.cancel()
		}
	}
}

func (c *children) find(id string) *runningChild {
	i := slices.IndexFunc(c.running, func(m *runningChild) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return c.running[i]
}

// isIdle reports whether nothing is under way but waiting for interrupts.
func (c *children) isIdle() bool {
	return len(c.running) > 0 && c.otherWork() == 0 && !slices.ContainsFunc(c.running, func(m *runningChild) bool { return !m.isIdle })
}

// receive handles the signal of a child: the thread takes the interrupts, others forward it.
func (c *children) receive(ctx workflow.Context, in runs.InterruptSignal) {
	m := c.find(in.From)
	if m == nil {
		return // it has ended
	}
	if in.Replies == m.repliesSent { // else it had not heard the last one
		m.isIdle = m.isIdle || in.Idle
	}
	c.updateSizes(in.Ancestors)
	switch {
	case c.run.child != nil:
		c.forward(ctx, m, in)
	case in.Cancelled:
		c.replyToCancelled(ctx, in.CallID)
	case in.Interrupts != nil:
		c.addInterrupt(ctx, m, in)
	}
}

// forward passes a signal on to the parent, and adds that all children wait, if they do.
func (c *children) forward(ctx workflow.Context, m *runningChild, in runs.InterruptSignal) {
	if in.Interrupts != nil {
		c.interrupts = append(c.interrupts, &childInterrupt{child: m, by: in.CallID, mustStay: in.MustStay})
	}
	in.Idle, in.MustStay = c.reportsIdle(), in.MustStay || c.run.in.Program != ""
	if in.Interrupts != nil || in.Idle {
		in.Ancestors = append(in.Ancestors, c.ownSize(ctx))
	}
	if in.Interrupts != nil || in.Cancelled || len(in.Ancestors) > 0 || in.Idle {
		c.run.tellParent(ctx, in)
	}
}

// ownSize returns the size of this subagent's state as it would be carried on now, with the
// children that have ended.
func (c *children) ownSize(ctx workflow.Context) runs.AncestorSize {
	return runs.AncestorSize{CallID: c.run.child.CallID, Size: c.run.suspendedSize(c.interruptsSoFar(ctx))}
}

// updateSizes takes the present sizes of the subagents between the thread and a child that waits.
func (c *children) updateSizes(sizes []runs.AncestorSize) {
	for _, now := range sizes {
		for _, a := range c.interrupts {
			for i := range a.between {
				if a.between[i].CallID == now.CallID {
					a.between[i] = now
				}
			}
		}
	}
}

// reportsIdle reports whether the parent is to be told that all children wait: once for each number
// of replies received.
func (c *children) reportsIdle() bool {
	if c.reportedIdle == c.run.child.replies+1 || !c.isIdle() {
		return false
	}
	c.reportedIdle = c.run.child.replies + 1
	return true
}

// forwardReply passes a reply on to the child that waits, or to the direct child through which its
// interrupts came.
func (c *children) forwardReply(ctx workflow.Context, in runs.ReplySignal) {
	c.run.child.replies++
	i := slices.IndexFunc(c.interrupts, func(a *childInterrupt) bool { return a.by == in.To && !a.replied })
	if i < 0 {
		return // it has ended
	}
	a := c.interrupts[i]
	a.replied = true
	c.reply(ctx, a, in)
}

func (c *children) reply(ctx workflow.Context, a *childInterrupt, in runs.ReplySignal) {
	c.onReplyFailed(ctx, a, c.send(ctx, a, in).Get(ctx, nil))
}

func (c *children) send(ctx workflow.Context, a *childInterrupt, in runs.ReplySignal) workflow.Future {
	in.To = a.by
	a.child.repliesSent, a.child.isIdle = a.child.repliesSent+1, false
	return a.child.SignalChildWorkflow(ctx, runs.SignalReply, in)
}

// onReplyFailed handles a reply that did not arrive. A child that has ended or is cancelled does
// not need it.
func (c *children) onReplyFailed(ctx workflow.Context, a *childInterrupt, err error) {
	if err != nil && !temporal.IsCanceledError(err) && ctx.Err() == nil && c.find(a.child.id) != nil {
		c.fails(err)
	}
}

// remove forgets a child that has ended, with its interrupts. If it ended so that the run can end
// with these, they become suspended, with the decisions that have arrived.
func (c *children) remove(id string, answer *runs.ToolAnswer) {
	m := c.find(id)
	c.running = slices.DeleteFunc(c.running, func(other *runningChild) bool { return other == m })
	c.interrupts = slices.DeleteFunc(c.interrupts, func(a *childInterrupt) bool {
		switch {
		case a.child != m:
			return false
		case a.waits == nil:
		case answer.Suspended != nil && !a.replied:
			answer.Interrupts.AdoptDecisions(a.waits)
			c.run.interrupts.suspended = append(c.run.interrupts.suspended, a.waits)
			c.run.interrupts.withdraw(a.waits)
		default:
			c.run.cancelInterrupts(c.ctx, a.waits)
		}
		return true
	})
}

// await waits for changes, or until a time, and processes all that have arrived. It does not end
// with ctx: cancelled children end, which is a change.
func (c *children) await(ctx workflow.Context, changes workflow.Selector, until time.Time) {
	r := c.run
	if !c.announceAll(ctx) { // what the run did not end with, though it seemed to
		return
	}
	idle, since := c.isIdle(), workflow.Now(ctx)
	if r.child == nil && idle {
		c.suspend(ctx)
	}
	lasting, _ := workflow.NewDisconnectedContext(ctx)
	ready := func() bool {
		return changes.HasPending() || slices.ContainsFunc(c.interrupts, (*childInterrupt).isResolved)
	}
	if until = c.nextCheck(until); until.IsZero() {
		_ = workflow.Await(lasting, ready)
	} else {
		_, _ = workflow.AwaitWithTimeout(lasting, max(until.Sub(workflow.Now(ctx)), 0), ready)
	}
	if idle { // that is no time of the run's
		r.excludeWait(ctx, since)
	}
	for changes.HasPending() {
		changes.Select(ctx)
	}
	_ = c.announceAll(ctx) // whoever waits looks whether that has failed
	if r.child != nil && c.reportsIdle() {
		r.tellParent(ctx, runs.InterruptSignal{Idle: true, Ancestors: []runs.AncestorSize{c.ownSize(ctx)}})
	}
}

// nextCheck returns when time changes an interrupt, at the latest at the given time; zero = no
// child waits.
func (c *children) nextCheck(at time.Time) (until time.Time) {
	for _, a := range c.interrupts {
		if !a.isOpen() || c.stopped() {
			continue
		}
		until = runs.Earlier(until, at)
		if a.waits != nil {
			until = runs.Earlier(until, a.waits.NextTime())
		}
	}
	return until
}

func (a *childInterrupt) isResolved() bool {
	return a.waits != nil && a.isOpen() && a.waits.IsResolved()
}

// replyResolved replies to children whose interrupts are all decided. Time may decide them before
// they are announced.
func (c *children) replyResolved(ctx workflow.Context) {
	for _, a := range c.interrupts {
		if a.waits == nil {
			continue
		}
		if a.waits.ApplyTime(workflow.Now(ctx)); a.isResolved() {
			c.reply(ctx, a, runs.ReplySignal{Calls: a.waits.Of(1).Calls})
			a.replied = true
		}
	}
}
