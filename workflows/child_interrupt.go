package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A subagent or branch that waits for interrupts signals the thread's workflow, through all
// workflows between them. Its siblings continue, and it continues itself as soon as its interrupts
// are decided.
//
//	child                        parent                       thread
//	  │ SignalInterrupt ──────────▶ │ SignalInterrupt ─────────▶ interrupt.announce.v1: readers and the inbox
//	  │                             │                            UpdateDecide … until all are decided
//	  │ ◀──────────── SignalReply   │ ◀─────────── SignalReply
//	  ▼ continues
//
// The thread validates decisions, counts votes and has the timers; the child receives the result.
//
// Each workflow knows which of its children wait, and signals its parent when all of them do
// (Idle). So the thread knows when all work waits for interrupts. Then it tells these children to
// end, and the run ends with their interrupts, if a payload has room for them. A held run waits
// instead. So does a run with a waiting program, because a program cannot end and restart.
//
// The thread has acknowledged decisions before the child learns of them. A child that is cancelled,
// with the run or because a sibling failed, therefore receives the decisions so far, and records
// them.

// signalParent signals the parent workflow, also when this workflow is cancelled. It does not wait:
// the future resolves when Temporal has delivered the signal.
func (r *run) signalParent(ctx workflow.Context, in runs.InterruptSignal) workflow.Future {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	info := workflow.GetInfo(ctx)
	in.From, in.Replies = info.WorkflowExecution.ID, r.child.replies
	return workflow.SignalExternalWorkflow(ctx, info.ParentWorkflowExecution.ID, info.ParentWorkflowExecution.RunID, runs.SignalInterrupt, in)
}

// sendInterrupt signals the interrupts of the turn (interrupts.held), with the state of this child,
// to the parent. It blocks until the signal is delivered. The ending is zero unless delivery
// failed.
func (r *run) sendInterrupt(ctx workflow.Context) ending {
	interrupts := *r.interrupts.held
	interrupts.Position = nil // in.Suspended has the position
	in := runs.InterruptSignal{Suspended: *r.suspendedChild(r.interrupts.held), Interrupts: &interrupts, CallID: r.child.CallID, CannotContinueAsNew: r.in.Program != "", Idle: true}
	if r.child.BranchPath != "" {
		in.Suspended.Branch = &r.child.Index
	}
	if err := r.signalParent(ctx, in).Get(ctx, nil); err != nil {
		return r.endingFromError(ctx, err)
	}
	return ending{}
}

// awaitReply blocks until the thread's reply arrives, and applies it: the child continues with the
// decisions, or ends with its interrupts. The wait does not count against the deadline. The
// ending is zero if the child continues.
//
// When the child is cancelled, it asks the thread for the decisions so far, and waits replyTimeout
// for them.
func (r *run) awaitReply(ctx workflow.Context) ending {
	since, replies := workflow.Now(ctx), workflow.GetSignalChannel(ctx, runs.SignalReply)
	hasReply := func() bool { return replies.Len() > 0 }
	if err := workflow.Await(ctx, hasReply); err != nil {
		r.signalParent(ctx, runs.InterruptSignal{CallID: r.child.CallID, Cancelled: true})
		disconnected, _ := workflow.NewDisconnectedContext(ctx)
		_, _ = workflow.AwaitWithTimeout(disconnected, replyTimeout, hasReply) // the parent may have closed
	}
	r.excludeWait(ctx, since)
	var reply runs.ReplySignal
	if replies.ReceiveAsync(&reply) {
		r.child.replies++
		r.interrupts.held.Items = reply.Items
	}
	if reply.Cancelled {
		// The thread knows of the cancel before this child does: the cancellation request is on its
		// way.
		ctx.Done().Receive(ctx, nil)
	}
	if set := r.interrupts.held; reply.Suspends && (ctx.Err() == nil || r.takesOver(ctx)) {
		r.interrupts.held = nil
		return withInterrupts(set)
	}
	return r.applyHeld(ctx)
}

// replyTimeout is how long a cancelled child waits for the decisions about its interrupts.
const replyTimeout = 10 * time.Second

// addInterrupt adds the interrupts of a waiting child, in the thread's own workflow. announceAll
// announces them after all signals that arrived with this one are processed. If the turn or step
// has stopped, the child only gets a reply that it is cancelled.
func (c *children) addInterrupt(ctx workflow.Context, rc *runningChild, in runs.InterruptSignal) {
	r := c.run
	ci := &childInterrupt{child: rc, by: in.CallID, cannotContinueAsNew: in.CannotContinueAsNew, ancestors: in.Ancestors, interrupts: r.interruptsOfAnswer(ctx, runs.ModelAnswer{})}
	ci.interrupts.Position, ci.interrupts.Round = nil, in.Interrupts.Round
	ci.interrupts.Adopt(in.Suspended, in.Interrupts)
	workflow.Go(rc.ctx, func(ctx workflow.Context) { c.replyOnCancel(ctx, ci) })
	if c.refusesInterrupts() {
		return
	}
	c.interrupts = append(c.interrupts, ci)
	r.interrupts.concurrent = append(r.interrupts.concurrent, ci.interrupts)
	step := r.ownStep(fmt.Sprintf("interrupt/%s/%d/%d", in.CallID, in.Suspended.Turn, in.Interrupts.Round))
	step.Closes = "" // siblings are still at work in the step
	ci.announcement = &runs.AnnounceInterrupts{Step: step, Interrupts: ci.interrupts, Concurrent: true}
}

// announceAll announces the interrupts that were added, unless the run is about to end with them:
// its terminal record announces them then. ok is false if an announcement failed. In a child it
// does nothing.
func (c *children) announceAll(ctx workflow.Context) (ok bool) {
	if c.run.child != nil || c.isIdle() && c.canSuspend(ctx) {
		return true
	}
	for _, ci := range slices.Clone(c.interrupts) {
		if ci.announcement != nil && ci.isOpen() && !c.refusesInterrupts() && !c.announce(ctx, ci) {
			return false
		}
	}
	return true
}

// announce schedules interrupt.announce for the interrupts of a child, which writes to the lane for
// interrupts of children. It blocks. ok is false if the activity failed; then the turn or step has
// stopped.
func (c *children) announce(ctx workflow.Context, ci *childInterrupt) (ok bool) {
	r, announcement := c.run, *ci.announcement
	ci.announcement = nil
	announcement.After = r.log.Interrupts
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, "announce interrupts"))
	var seq uint64
	if err := workflow.ExecuteActivity(ctx, runs.ActivityAnnounce, announcement).Get(ctx, &seq); err != nil {
		c.addError(err)
		return false
	}
	r.log.Interrupts, ci.interrupts.AnnouncedBy = seq, seq
	ci.interrupts.NoteOpened()
	return true
}

// replyToCancelled sends a cancelled child the decisions so far, in answer to its signal, and
// cancels its interrupts.
func (c *children) replyToCancelled(ctx workflow.Context, by string) {
	i := slices.IndexFunc(c.interrupts, func(ci *childInterrupt) bool { return ci.by == by && ci.isOpen() })
	if i < 0 {
		return
	}
	ci := c.interrupts[i]
	ci.replied = true
	c.interrupts = slices.Delete(c.interrupts, i, i+1)
	c.reply(ctx, ci, runs.ReplySignal{Cancelled: true, Items: ci.interrupts.OfChild(1).Items})
	c.run.cancelInterrupts(ctx, ci.interrupts)
}

// replyOnCancel runs in a coroutine for each waiting child. It blocks until ctx, the child's
// context, is cancelled. Then it sends the child the decisions so far, if no reply was sent yet.
func (c *children) replyOnCancel(ctx workflow.Context, ci *childInterrupt) {
	ctx.Done().Receive(ctx, nil)
	if !ci.isOpen() || c.find(ci.child.id) == nil {
		return
	}
	ci.replied = true
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ci.child.repliesSent++
	ci.child.SignalChildWorkflow(ctx, runs.SignalReply, runs.ReplySignal{To: ci.by, Cancelled: true, Items: ci.interrupts.OfChild(1).Items})
}

// canSuspend reports whether the run can end with all open interrupts. It cannot if it is held
// (except when its history is long), if a waiting program must stay, if a child is about to
// continue, or if a payload has no room for the interrupts and the state of the children. Such a
// run stays open until enough interrupts are decided.
func (c *children) canSuspend(ctx workflow.Context) bool {
	r := c.run
	if c.refusesInterrupts() || r.in.Hold && !historyIsLong(ctx) || slices.ContainsFunc(c.interrupts, func(ci *childInterrupt) bool { return ci.cannotContinueAsNew && ci.isOpen() }) {
		return false
	}
	if slices.ContainsFunc(c.interrupts, (*childInterrupt).isResolved) {
		return false // that child continues, and may fail: siblings that had ended would not be cancelled
	}
	interrupts, room, counted := c.interruptsSoFar(ctx), 0, map[string]bool{}
	for _, ci := range c.interrupts {
		if ci.replied {
			continue
		}
		interrupts.Adopt(ci.interrupts.Suspended[0], ci.interrupts.OfChild(1))
		for _, b := range ci.ancestors {
			if !counted[b.CallID] {
				room, counted[b.CallID] = room+b.Size, true
			}
		}
	}
	room += roomToEnd * (1 + len(interrupts.Suspended) + len(counted))
	return interrupts.FitsWith(r.in, room)
}

// roomToEnd bounds the bytes that each suspended subagent adds to the payload when it ends, besides
// its state: its index, when its interrupts opened, and the fields that mark it as suspended.
const roomToEnd = 80

// suspend tells the waiting children to end, if the run can end with their interrupts, and blocks
// until the signals are delivered. The thread takes no decisions until the run has ended, or
// continues after all: a decision would miss a child that is ending.
func (c *children) suspend(ctx workflow.Context) {
	if !c.canSuspend(ctx) {
		return
	}
	r := c.run
	r.thread.stopDecisions(ctx)
	var deliveries []func()
	for _, ci := range c.interrupts {
		if !ci.isOpen() || ci.interrupts.IsResolved() {
			continue
		}
		ci.suspended = true
		delivery := c.send(ctx, ci, runs.ReplySignal{Suspends: true, Items: ci.interrupts.OfChild(1).Items})
		deliveries = append(deliveries, func() { c.onReplyFailed(ctx, ci, delivery.Get(ctx, nil)) })
	}
	for _, await := range deliveries {
		await()
	}
	hasSuspended := slices.ContainsFunc(c.interrupts, func(ci *childInterrupt) bool { return ci.suspended && !ci.replied })
	if !hasSuspended || slices.ContainsFunc(c.interrupts, (*childInterrupt).isOpen) {
		r.thread.allowDecisions(ctx)
	}
}

// cancelInterrupts cancels interrupts: no decision can take effect. Approvers are notified of it.
// In a child it only forgets them, because the thread cancels and notifies.
func (r *run) cancelInterrupts(ctx workflow.Context, all ...*runs.Interrupts) {
	if r.child != nil {
		r.interrupts.drop(all...)
		return
	}
	r.interrupts.cancel(workflow.Now(ctx), all...)
}
