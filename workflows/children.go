package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// children are the children of a workflow that are under way: branches of a step, or subagents that work for the calls of a
// turn. Those who come to wait ask through it (see beside.go).
type children struct {
	run *run
	// ctx is the turn's or the step's, stopped tells that nobody is to be asked any more, fails has it be so.
	ctx     workflow.Context
	stopped func() bool
	fails   func(error)
	// otherWork is how many other things are under way beside them, carried what the run waits for already if it ends.
	otherWork       func() int
	interruptsSoFar func(workflow.Context) *runs.Interrupts

	running      []*runningChild
	interrupts   []*childInterrupt
	reportedIdle int // the replies that had come here, and 1, when the parent was told that everybody waits
}

// runningChild is a child.
type runningChild struct {
	workflow.ChildWorkflowFuture
	ctx    workflow.Context // which cancel ends
	cancel workflow.CancelFunc
	id     string
	// isIdle tells that nothing is under way in it but what waits for answers, as of the last of the replies that were sent
	// there: sent is how many.
	isIdle      bool
	repliesSent int
}

// childInterrupt is somebody who waits for answers: a child, or one below it.
type childInterrupt struct {
	child        *runningChild
	by           string
	waits        *runs.Interrupts // with it as the first of the suspended; nil = the thread's workflow has it
	mustStay     bool
	between      []runs.AncestorSize      // it and this workflow
	announcement *runs.AnnounceInterrupts // what tells readers and the inbox; nil = they are told
	// replied tells that it was answered, suspended that it was told to end.
	replied   bool
	suspended bool
}

func (a *childInterrupt) isOpen() bool { return !a.replied && !a.suspended }

// listen has the changes bring what children say, and replies to them.
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

// isInterrupted tells whether somebody waits for answers.
func (c *children) isInterrupted() bool {
	return slices.ContainsFunc(c.interrupts, func(a *childInterrupt) bool { return !a.replied })
}

func (c *children) add(ctx workflow.Context, id string, child workflow.ChildWorkflowFuture, cancel workflow.CancelFunc) {
	c.running = append(c.running, &runningChild{ChildWorkflowFuture: child, ctx: ctx, cancel: cancel, id: id})
}

// cancelInterrupted cancels the children in which somebody waits for answers.
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

// isIdle tells whether nothing is under way but what waits for answers.
func (c *children) isIdle() bool {
	return len(c.running) > 0 && c.otherWork() == 0 && !slices.ContainsFunc(c.running, func(m *runningChild) bool { return !m.isIdle })
}

// receive takes what a child says: that somebody asks, in it or below it, or what has become of that.
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

// forward tells the parent what a child has said, and that everybody waits if they do.
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

// ownSize is this workflow, as large as it is by now: what has become of those that have ended is part of it.
func (c *children) ownSize(ctx workflow.Context) runs.AncestorSize {
	return runs.AncestorSize{CallID: c.run.child.CallID, Size: c.run.suspendedSize(c.interruptsSoFar(ctx))}
}

// updateSizes takes in how large those have become that are between this workflow and who asks.
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

// reportsIdle tells whether the parent is to be told that everybody waits: once for as many replies as have come.
func (c *children) reportsIdle() bool {
	if c.reportedIdle == c.run.child.replies+1 || !c.isIdle() {
		return false
	}
	c.reportedIdle = c.run.child.replies + 1
	return true
}

// forwardReply hands a reply on to who asked, or to the child that knows who that is.
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
	c.sent(ctx, a, c.send(ctx, a, in).Get(ctx, nil))
}

func (c *children) send(ctx workflow.Context, a *childInterrupt, in runs.ReplySignal) workflow.Future {
	in.To = a.by
	a.child.repliesSent, a.child.isIdle = a.child.repliesSent+1, false
	return a.child.SignalChildWorkflow(ctx, runs.SignalReply, in)
}

// sent takes in whether a reply has come to its child: one that has ended, or is cancelled, ends without.
func (c *children) sent(ctx workflow.Context, a *childInterrupt, err error) {
	if err != nil && !temporal.IsCanceledError(err) && ctx.Err() == nil && c.find(a.child.id) != nil {
		c.fails(err)
	}
}

// remove is done with a child that has ended, and with what was asked in it. If it waits still, it is for what people
// have not said by now.
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

// await waits until there is something to take in among the changes, and takes it in, or until some time. Cancelled
// children end, so it needs no context that does.
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

// nextCheck is when to look again at the latest: when time runs out for a question, or at the time that is given if there
// are any.
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

// replyResolved has those go on who have their answers, also if nobody was told that they ask: it may be too late already.
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
