package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A subagent or branch that waits for interrupts, however deep it is, signals the thread's
// workflow. Its siblings continue, and it continues itself as soon as its interrupts are decided.
//
//	child                        parent                       thread
//	  │ SignalInterrupt ──────────▶ │ SignalInterrupt ─────────▶ interrupt.announce.v1: readers and the inbox are told
//	  │                             │                            UpdateDecide … until all are decided
//	  │ ◀──────────── SignalReply   │ ◀─────────── SignalReply
//	  ▼ continues
//
// The thread checks decisions, counts votes and watches the clock; the child receives the result.
// Each workflow knows which of its children wait, and signals its parent when all of them do. So
// the thread knows when nothing is under way but waiting. Then it tells these children to end, and
// the run ends with their interrupts, if a payload has room for them. A held run waits instead, and
// so does one whose program waits: a program cannot end and begin again.
//
// People were told that their decision counts. A child that is cancelled, with the run or because a
// sibling failed, therefore receives what was decided before, and records it.

// tellParent signals the parent, also when this workflow is cancelled.
func (r *run) tellParent(ctx workflow.Context, in runs.InterruptSignal) workflow.Future {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	info := workflow.GetInfo(ctx)
	in.From, in.Replies = info.WorkflowExecution.ID, r.child.replies
	return workflow.SignalExternalWorkflow(ctx, info.ParentWorkflowExecution.ID, info.ParentWorkflowExecution.RunID, runs.SignalInterrupt, in)
}

// sendInterrupt signals the interrupts of the turn to the thread. over tells that the child ends,
// because it could not.
func (r *run) sendInterrupt(ctx workflow.Context) (end ending, over bool) {
	waits := *r.interrupts.held
	waits.Position = nil // Suspended has it
	in := runs.InterruptSignal{Suspended: *r.suspendedChild(r.interrupts.held), Interrupts: &waits, CallID: r.child.CallID, MustStay: r.in.Program != "", Idle: true}
	if r.child.BranchPath != "" {
		in.Suspended.Branch = &r.child.Index
	}
	if err := r.tellParent(ctx, in).Get(ctx, nil); err != nil {
		return r.failure(ctx, err), true
	}
	return ending{}, false
}

// awaitReply waits for the thread's reply, and does what it says. The wait does not count against
// the deadline. over tells that the child ends.
func (r *run) awaitReply(ctx workflow.Context) (end ending, over bool) {
	since, replies := workflow.Now(ctx), workflow.GetSignalChannel(ctx, runs.SignalReply)
	come := func() bool { return replies.Len() > 0 }
	if err := workflow.Await(ctx, come); err != nil {
		r.tellParent(ctx, runs.InterruptSignal{CallID: r.child.CallID, Cancelled: true})
		lasting, _ := workflow.NewDisconnectedContext(ctx)
		_, _ = workflow.AwaitWithTimeout(lasting, replyPatience, come) // a workflow that is gone says nothing
	}
	r.excludeWait(ctx, since)
	var reply runs.ReplySignal
	if replies.ReceiveAsync(&reply) {
		r.child.replies++
		r.interrupts.held.Calls = reply.Calls
	}
	if reply.Cancelled {
		ctx.Done().Receive(ctx, nil)
	}
	if w := r.interrupts.held; reply.Suspends && ctx.Err() == nil {
		r.interrupts.held = nil
		return ending{outcome: w.Outcome(), waits: w}, true
	}
	return r.applyHeld(ctx)
}

// replyPatience is how long a cancelled child waits to hear what was decided.
const replyPatience = 10 * time.Second

// addInterrupt adds the interrupts of a child. They are announced when all signals that arrived
// with it are processed.
func (c *children) addInterrupt(ctx workflow.Context, m *runningChild, in runs.InterruptSignal) {
	r := c.run
	a := &childInterrupt{child: m, by: in.CallID, mustStay: in.MustStay, between: in.Ancestors, waits: r.waitsOf(ctx, runs.ModelAnswer{})}
	a.waits.Position, a.waits.Round = nil, in.Interrupts.Round
	a.waits.Adopt(in.Suspended, in.Interrupts)
	workflow.Go(m.ctx, func(ctx workflow.Context) { c.replyOnCancel(ctx, a) })
	if c.stopped() {
		return
	}
	c.interrupts = append(c.interrupts, a)
	r.interrupts.concurrent = append(r.interrupts.concurrent, a.waits)
	step := r.ownStep(fmt.Sprintf("ask/%s/%d/%d", in.CallID, in.Suspended.Turn, in.Interrupts.Round))
	step.Closes = "" // the step stays open for the others
	a.announcement = &runs.AnnounceInterrupts{Step: step, Interrupts: a.waits, Concurrent: true}
}

// announceAll announces the interrupts that were added, unless the run is about to end with them.
// ok is false if that failed.
func (c *children) announceAll(ctx workflow.Context) (ok bool) {
	if c.run.child != nil || c.isIdle() && c.canSuspend(ctx) {
		return true
	}
	for _, a := range slices.Clone(c.interrupts) {
		if a.announcement != nil && a.isOpen() && !c.stopped() && !c.announce(ctx, a) {
			return false
		}
	}
	return true
}

// announce tells readers and the inbox about the interrupts of a child. ok is false if that failed.
func (c *children) announce(ctx workflow.Context, a *childInterrupt) (ok bool) {
	r, hold := c.run, *a.announcement
	a.announcement = nil
	hold.After = r.log.Interrupts
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, "ask"))
	var seq uint64
	if err := workflow.ExecuteActivity(ctx, runs.ActivityAnnounce, hold).Get(ctx, &seq); err != nil {
		c.fails(err)
		return false
	}
	r.log.Interrupts, a.waits.After = seq, seq
	a.waits.NoteOpened()
	return true
}

// replyToCancelled tells a cancelled child what was decided until now. Its interrupts are
// cancelled.
func (c *children) replyToCancelled(ctx workflow.Context, by string) {
	i := slices.IndexFunc(c.interrupts, func(a *childInterrupt) bool { return a.by == by && a.isOpen() })
	if i < 0 {
		return
	}
	a := c.interrupts[i]
	a.replied = true
	c.interrupts = slices.Delete(c.interrupts, i, i+1)
	c.reply(ctx, a, runs.ReplySignal{Cancelled: true, Calls: a.waits.Of(1).Calls})
	c.run.cancelInterrupts(ctx, a.waits)
}

// replyOnCancel tells a child what was decided, when ctx of the children is cancelled.
func (c *children) replyOnCancel(ctx workflow.Context, a *childInterrupt) {
	ctx.Done().Receive(ctx, nil)
	if !a.isOpen() || c.find(a.child.id) == nil {
		return
	}
	a.replied = true
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	a.child.repliesSent++
	a.child.SignalChildWorkflow(ctx, runs.SignalReply, runs.ReplySignal{To: a.by, Cancelled: true, Calls: a.waits.Of(1).Calls})
}

// canSuspend reports whether the run can end with all open interrupts: a payload has room for them,
// and nothing else is about to happen. A run that cannot stays open until enough of them are
// decided.
func (c *children) canSuspend(ctx workflow.Context) bool {
	r := c.run
	if c.stopped() || r.in.Hold && !historyIsLong(ctx) || slices.ContainsFunc(c.interrupts, func(a *childInterrupt) bool { return a.mustStay && a.isOpen() }) {
		return false
	}
	if slices.ContainsFunc(c.interrupts, (*childInterrupt).isResolved) {
		return false // that child continues, and may fail: siblings that had ended would not be cancelled
	}
	waits, room, counted := c.interruptsSoFar(ctx), 0, map[string]bool{}
	for _, a := range c.interrupts {
		if a.replied {
			continue
		}
		waits.Adopt(a.waits.Suspended[0], a.waits.Of(1))
		for _, b := range a.between {
			if !counted[b.CallID] {
				room, counted[b.CallID] = room+b.Size, true
			}
		}
	}
	room += roomToEnd * (1 + len(waits.Suspended) + len(counted))
	return waits.FitsWith(r.in, room)
}

// roomToEnd bounds the bytes that each suspended subagent adds to the payload when it ends, besides
// its state: its index, when it asked, and that it waits.
const roomToEnd = 80

// suspend tells the children that wait to end, if the run can end with their interrupts. Until the
// run has ended, or continues after all, no decision is taken.
func (c *children) suspend(ctx workflow.Context) {
	if !c.canSuspend(ctx) {
		return
	}
	r := c.run
	r.thread.suspend(ctx)
	var told []func()
	for _, a := range c.interrupts {
		if !a.isOpen() || a.waits.IsResolved() {
			continue
		}
		a.suspended = true
		taken := c.send(ctx, a, runs.ReplySignal{Suspends: true, Calls: a.waits.Of(1).Calls})
		told = append(told, func() { c.onReplyFailed(ctx, a, taken.Get(ctx, nil)) })
	}
	for _, await := range told {
		await()
	}
	ends := slices.ContainsFunc(c.interrupts, func(a *childInterrupt) bool { return !a.replied }) && !slices.ContainsFunc(c.interrupts, (*childInterrupt).isOpen)
	if !ends {
		r.thread.resume(ctx)
	}
}

// cancelInterrupts cancels interrupts: no decision is awaited any more. In a child, the thread does
// so.
func (r *run) cancelInterrupts(ctx workflow.Context, all ...*runs.Interrupts) {
	if r.child != nil {
		r.interrupts.withdraw(all...)
		return
	}
	r.interrupts.cancel(workflow.Now(ctx), all...)
}
