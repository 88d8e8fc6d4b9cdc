package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// crew are the children of a workflow that are under way: branches of a step, or subagents that work for the calls of a
// turn. Those who come to wait ask through it (see beside.go).
type crew struct {
	run *run
	// ctx is the turn's or the step's, stopped tells that nobody is to be asked any more, fails has it be so.
	ctx     workflow.Context
	stopped func() bool
	fails   func(error)
	// others is how many other things are under way beside them, carried what the run waits for already if it ends.
	others  func() int
	carried func(workflow.Context) *Waits

	members []*member
	asking  []*asking
	told    int // the replies that had come here, and 1, when the parent was told that everybody waits
}

// member is a child.
type member struct {
	workflow.ChildWorkflowFuture
	ctx    workflow.Context // which cancel ends
	cancel workflow.CancelFunc
	id     string
	// waits tells that nothing is under way in it but what waits for answers, as of the last of the replies that were sent
	// there: sent is how many.
	waits bool
	sent  int
}

// asking is somebody who waits for answers: a child, or one below it.
type asking struct {
	member  *member
	by      string
	waits   *Waits // with it as the first of the suspended; nil = the thread's workflow has it
	stays   bool
	between []Between // it and this workflow
	hold    *Hold     // what tells readers and the inbox; nil = they are told
	// replied tells that it was answered, suspended that it was told to end.
	replied   bool
	suspended bool
}

func (a *asking) open() bool { return !a.replied && !a.suspended }

// listen has the changes bring what children say, and replies to them.
func (c *crew) listen(ctx workflow.Context, changes workflow.Selector) {
	changes.AddReceive(workflow.GetSignalChannel(ctx, SignalAsk), func(said workflow.ReceiveChannel, _ bool) {
		var in Ask
		said.Receive(ctx, &in)
		c.hear(ctx, in)
	})
	if c.run.child == nil {
		return
	}
	changes.AddReceive(workflow.GetSignalChannel(ctx, SignalReply), func(said workflow.ReceiveChannel, _ bool) {
		var in Reply
		said.Receive(ctx, &in)
		c.answer(ctx, in)
	})
}

// asks tells whether somebody waits for answers.
func (c *crew) asks() bool {
	return slices.ContainsFunc(c.asking, func(a *asking) bool { return !a.replied })
}

func (c *crew) join(ctx workflow.Context, id string, child workflow.ChildWorkflowFuture, cancel workflow.CancelFunc) {
	c.members = append(c.members, &member{ChildWorkflowFuture: child, ctx: ctx, cancel: cancel, id: id})
}

// dismiss cancels the children in which somebody waits for answers.
func (c *crew) dismiss() {
	for _, a := range c.asking {
		if !a.replied {
			a.member.cancel()
		}
	}
}

func (c *crew) find(id string) *member {
	i := slices.IndexFunc(c.members, func(m *member) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return c.members[i]
}

// idle tells whether nothing is under way but what waits for answers.
func (c *crew) idle() bool {
	return len(c.members) > 0 && c.others() == 0 && !slices.ContainsFunc(c.members, func(m *member) bool { return !m.waits })
}

// hear takes what a child says: that somebody asks, in it or below it, or what has become of that.
func (c *crew) hear(ctx workflow.Context, in Ask) {
	m := c.find(in.From)
	if m == nil {
		return // it has ended
	}
	if in.Replies == m.sent { // else it had not heard the last one
		m.waits = m.waits || in.Idle
	}
	c.measure(in.Between)
	switch {
	case c.run.child != nil:
		c.passOn(ctx, m, in)
	case in.Ends:
		c.give(ctx, in.By)
	case in.Waits != nil:
		c.host(ctx, m, in)
	}
}

// passOn tells the parent what a child has said, and that everybody waits if they do.
func (c *crew) passOn(ctx workflow.Context, m *member, in Ask) {
	if in.Waits != nil {
		c.asking = append(c.asking, &asking{member: m, by: in.By, stays: in.Stays})
	}
	in.Idle, in.Stays = c.tellsIdle(), in.Stays || c.run.in.Program != ""
	if in.Waits != nil || in.Idle {
		in.Between = append(in.Between, c.between(ctx))
	}
	if in.Waits != nil || in.Ends || len(in.Between) > 0 || in.Idle {
		c.run.tellParent(ctx, in)
	}
}

// between is this workflow, as large as it is by now: what has become of those that have ended is part of it.
func (c *crew) between(ctx workflow.Context) Between {
	return Between{By: c.run.child.CallID, Size: c.run.size(c.carried(ctx))}
}

// measure takes in how large those have become that are between this workflow and who asks.
func (c *crew) measure(sizes []Between) {
	for _, now := range sizes {
		for _, a := range c.asking {
			for i := range a.between {
				if a.between[i].By == now.By {
					a.between[i] = now
				}
			}
		}
	}
}

// tellsIdle tells whether the parent is to be told that everybody waits: once for as many replies as have come.
func (c *crew) tellsIdle() bool {
	if c.told == c.run.child.replies+1 || !c.idle() {
		return false
	}
	c.told = c.run.child.replies + 1
	return true
}

// answer hands a reply on to who asked, or to the child that knows who that is.
func (c *crew) answer(ctx workflow.Context, in Reply) {
	c.run.child.replies++
	i := slices.IndexFunc(c.asking, func(a *asking) bool { return a.by == in.To && !a.replied })
	if i < 0 {
		return // it has ended
	}
	a := c.asking[i]
	a.replied = true
	c.reply(ctx, a, in)
}

func (c *crew) reply(ctx workflow.Context, a *asking, in Reply) {
	c.sent(ctx, a, c.send(ctx, a, in).Get(ctx, nil))
}

func (c *crew) send(ctx workflow.Context, a *asking, in Reply) workflow.Future {
	in.To = a.by
	a.member.sent, a.member.waits = a.member.sent+1, false
	return a.member.SignalChildWorkflow(ctx, SignalReply, in)
}

// sent takes in whether a reply has come to its child: one that has ended, or is cancelled, ends without.
func (c *crew) sent(ctx workflow.Context, a *asking, err error) {
	if err != nil && !temporal.IsCanceledError(err) && ctx.Err() == nil && c.find(a.member.id) != nil {
		c.fails(err)
	}
}

// leave is done with a child that has ended, and with what was asked in it. If it waits still, it is for what people
// have not said by now.
func (c *crew) leave(id string, answer *ToolAnswer) {
	m := c.find(id)
	c.members = slices.DeleteFunc(c.members, func(other *member) bool { return other == m })
	c.asking = slices.DeleteFunc(c.asking, func(a *asking) bool {
		switch {
		case a.member != m:
			return false
		case a.waits == nil:
		case answer.Suspended != nil && !a.replied:
			answer.Waits.heed(a.waits)
			c.run.interrupts.suspended = append(c.run.interrupts.suspended, a.waits)
			c.run.interrupts.withdraw(a.waits)
		default:
			c.run.cancelInterrupts(c.ctx, a.waits)
		}
		return true
	})
}

// heed takes over what people have said about calls, and since when they are asked about them.
func (w *Waits) heed(said *Waits) {
	for _, c := range said.of(1).Calls {
		if own := w.find(c.ID); own != nil {
			within := own.Within
			*own = c
			own.Within = within
			if c.Told {
				own.Opened = c.Since(said.Opened)
			}
		}
	}
	w.Noticed = max(w.Noticed, said.Noticed)
}

// await waits until there is something to take in among the changes, and takes it in, or until some time. Cancelled
// children end, so it needs no context that does.
func (c *crew) await(ctx workflow.Context, changes workflow.Selector, until time.Time) {
	r := c.run
	if !c.announce(ctx) { // what the run did not end with, though it seemed to
		return
	}
	idle, since := c.idle(), workflow.Now(ctx)
	if r.child == nil && idle {
		c.suspend(ctx)
	}
	lasting, _ := workflow.NewDisconnectedContext(ctx)
	ready := func() bool { return changes.HasPending() || slices.ContainsFunc(c.asking, (*asking).settled) }
	if until = c.until(until); until.IsZero() {
		_ = workflow.Await(lasting, ready)
	} else {
		_, _ = workflow.AwaitWithTimeout(lasting, max(until.Sub(workflow.Now(ctx)), 0), ready)
	}
	if idle { // that is no time of the run's
		r.waited(ctx, since)
	}
	for changes.HasPending() {
		changes.Select(ctx)
	}
	_ = c.announce(ctx) // whoever waits looks whether that has failed
	if r.child != nil && c.tellsIdle() {
		r.tellParent(ctx, Ask{Idle: true, Between: []Between{c.between(ctx)}})
	}
}

// until is when to look again at the latest: when time runs out for a question, or at the time that is given if there
// are any.
func (c *crew) until(at time.Time) (until time.Time) {
	for _, a := range c.asking {
		if !a.open() || c.stopped() {
			continue
		}
		until = earlier(until, at)
		if a.waits != nil {
			until = earlier(until, a.waits.next())
		}
	}
	return until
}

func (a *asking) settled() bool { return a.waits != nil && a.open() && a.waits.settled() }

// replySettled has those go on who have their answers, also if nobody was told that they ask: it may be too late already.
func (c *crew) replySettled(ctx workflow.Context) {
	for _, a := range c.asking {
		if a.waits == nil {
			continue
		}
		if a.waits.pass(workflow.Now(ctx)); a.settled() {
			c.reply(ctx, a, Reply{Calls: a.waits.of(1).Calls})
			a.replied = true
		}
	}
}
