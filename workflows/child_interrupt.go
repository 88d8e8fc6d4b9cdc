package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
)

// Whoever comes to wait for people, or for its client, as a branch or a subagent, however deep, asks the thread's
// workflow and stays as it is: what is beside it goes on, and it goes on itself as soon as it is answered, in any order.
//
//	subagent                 parent              thread's workflow
//	  │ SignalAsk ────────────▶ │ SignalAsk ───────▶ run.hold.v1: readers and the inbox are told
//	  │                         │                    UpdateDecide … until all of it is answered
//	  │ ◀──────── SignalReply │ ◀────── SignalReply
//	  ▼ goes on
//
// The thread's workflow judges what is decided, counts votes and looks at the clock; who asked hears the result. Each
// workflow knows which of its children wait (crew), and tells its parent when all do: so the thread's knows when
// nothing is under way any more but questions. Then those who ask are told to end, and the run ends with what they ask, if
// there is room for it; one that is held waits. So does one with a program that asks: that cannot end and begin again.
//
// Whoever decided was told that it counts. So who is cancelled, with the run or for the failure of a
// sibling, hears before what was decided by then, and has the log tell it.

// SignalInterrupt and SignalReply pass between a workflow and its children.
const (
	SignalInterrupt = "ask"
	SignalReply     = "reply"
)

// InterruptSignal is what SignalAsk carries.
type InterruptSignal struct {
	// Suspended is who asks, as it waits, and Waits what for; nil = only what is below is told.
	Suspended  SuspendedChild `json:"suspended,omitzero"`
	Interrupts *Interrupts    `json:"waits,omitempty"`
	// CallID names who asks. Stays tells that it cannot end and begin again, Between who else comes along in a payload if it does,
	// or how large they have become by now.
	CallID    string         `json:"by,omitempty"`
	MustStay  bool           `json:"stays,omitempty"`
	Ancestors []AncestorSize `json:"between,omitempty"`
	// From is the child that tells it. Idle tells that nothing is under way there but what waits for answers, as of so many
	// Replies that have come.
	From    string `json:"from,omitempty"`
	Idle    bool   `json:"idle,omitempty"`
	Replies int    `json:"replies,omitempty"`
	// Cancelled tells that who has asked is cancelled, and wants to hear what was decided by now.
	Cancelled bool `json:"ends,omitempty"`
}

// AncestorSize is a subagent between one that asks and the thread's workflow: with all who ask below it, it is one.
type AncestorSize struct {
	CallID string `json:"by"`
	Size   int    `json:"size"` // in bytes
}

// ReplySignal is what SignalReply carries.
type ReplySignal struct {
	// To is who has asked.
	To string `json:"to,omitempty"`
	// Calls are what was waited for, with the answers.
	Calls []Interrupt `json:"calls,omitempty"`
	// Suspends tells who has asked to end where it is.
	Suspends bool `json:"suspends,omitempty"`
	// Cancelled tells that it is cancelled, though that may come later.
	Cancelled bool `json:"ends,omitempty"`
}

// tellParent tells the parent's workflow, also when this one is cancelled.
func (r *run) tellParent(ctx workflow.Context, in InterruptSignal) workflow.Future {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	info := workflow.GetInfo(ctx)
	in.From, in.Replies = info.WorkflowExecution.ID, r.child.replies
	return workflow.SignalExternalWorkflow(ctx, info.ParentWorkflowExecution.ID, info.ParentWorkflowExecution.RunID, SignalInterrupt, in)
}

// sendInterrupt tells the thread's workflow what this one waits for. over tells that it ends, since it could not.
func (r *run) sendInterrupt(ctx workflow.Context) (end ending, over bool) {
	waits := *r.interrupts.held
	waits.Position = nil // Suspended has it
	in := InterruptSignal{Suspended: *r.suspendedChild(r.interrupts.held), Interrupts: &waits, CallID: r.child.CallID, MustStay: r.in.Program != "", Idle: true}
	if r.child.BranchPath != "" {
		in.Suspended.Branch = &r.child.Index
	}
	if err := r.tellParent(ctx, in).Get(ctx, nil); err != nil {
		return r.failure(ctx, err), true
	}
	return ending{}, false
}

// awaitReply waits for what the thread's workflow says, and does it. That is no time of this one's. over
// tells that it ends with it.
func (r *run) awaitReply(ctx workflow.Context) (end ending, over bool) {
	since, replies := workflow.Now(ctx), workflow.GetSignalChannel(ctx, SignalReply)
	come := func() bool { return replies.Len() > 0 }
	if err := workflow.Await(ctx, come); err != nil {
		r.tellParent(ctx, InterruptSignal{CallID: r.child.CallID, Cancelled: true})
		lasting, _ := workflow.NewDisconnectedContext(ctx)
		_, _ = workflow.AwaitWithTimeout(lasting, replyPatience, come) // a workflow that is gone says nothing
	}
	r.excludeWait(ctx, since)
	var reply ReplySignal
	if replies.ReceiveAsync(&reply) {
		r.child.replies++
		r.interrupts.held.Calls = reply.Calls
	}
	if reply.Cancelled {
		ctx.Done().Receive(ctx, nil)
	}
	if w := r.interrupts.held; reply.Suspends && ctx.Err() == nil {
		r.interrupts.held = nil
		return ending{outcome: w.outcome(), waits: w}, true
	}
	return r.applyHeld(ctx)
}

// replyPatience is how long who is cancelled waits to hear what was decided.
const replyPatience = 10 * time.Second

// addInterrupt takes what somebody asks. When all that has come is taken in, readers and the inbox are told of it (announce).
func (c *children) addInterrupt(ctx workflow.Context, m *runningChild, in InterruptSignal) {
	r := c.run
	a := &childInterrupt{child: m, by: in.CallID, mustStay: in.MustStay, between: in.Ancestors, waits: r.waitsOf(ctx, ModelAnswer{})}
	a.waits.Position, a.waits.Round = nil, in.Interrupts.Round
	a.waits.adopt(in.Suspended, in.Interrupts)
	workflow.Go(m.ctx, func(ctx workflow.Context) { c.replyOnCancel(ctx, a) })
	if c.stopped() {
		return
	}
	c.interrupts = append(c.interrupts, a)
	r.interrupts.concurrent = append(r.interrupts.concurrent, a.waits)
	step := r.ownStep(fmt.Sprintf("ask/%s/%d/%d", in.CallID, in.Suspended.Turn, in.Interrupts.Round))
	step.Closes = "" // the step stays open for the others
	a.announcement = &AnnounceInterrupts{Step: step, Interrupts: a.waits, Concurrent: true}
}

// announceAll tells readers and the inbox what is asked, unless the run is about to end with it. ok tells that it did not fail.
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

// announce tells readers and the inbox what somebody asks; ok tells that it did not fail.
func (c *children) announce(ctx workflow.Context, a *childInterrupt) (ok bool) {
	r, hold := c.run, *a.announcement
	a.announcement = nil
	hold.After = r.log.Interrupts
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, "ask"))
	var seq uint64
	if err := workflow.ExecuteActivity(ctx, ActivityAnnounce, hold).Get(ctx, &seq); err != nil {
		c.fails(err)
		return false
	}
	r.log.Interrupts, a.waits.After = seq, seq
	a.waits.noteOpened()
	return true
}

// replyToCancelled tells who has asked and is cancelled what was decided by now. Nobody is asked any more.
func (c *children) replyToCancelled(ctx workflow.Context, by string) {
	i := slices.IndexFunc(c.interrupts, func(a *childInterrupt) bool { return a.by == by && a.isOpen() })
	if i < 0 {
		return
	}
	a := c.interrupts[i]
	a.replied = true
	c.interrupts = slices.Delete(c.interrupts, i, i+1)
	c.reply(ctx, a, ReplySignal{Cancelled: true, Calls: a.waits.of(1).Calls})
	c.run.cancelInterrupts(ctx, a.waits)
}

// replyOnCancel tells who asks what was decided, when the children are cancelled.
func (c *children) replyOnCancel(ctx workflow.Context, a *childInterrupt) {
	ctx.Done().Receive(ctx, nil)
	if !a.isOpen() || c.find(a.child.id) == nil {
		return
	}
	a.replied = true
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	a.child.repliesSent++
	a.child.SignalChildWorkflow(ctx, SignalReply, ReplySignal{To: a.by, Cancelled: true, Calls: a.waits.of(1).Calls})
}

// canSuspend tells whether the run can end with all that is asked, and go on with it. One that cannot goes on until so
// much is answered that it can.
func (c *children) canSuspend(ctx workflow.Context) bool {
	r := c.run
	if c.stopped() || r.in.Hold && !historyIsLong(ctx) || slices.ContainsFunc(c.interrupts, func(a *childInterrupt) bool { return a.mustStay && a.isOpen() }) {
		return false
	}
	if slices.ContainsFunc(c.interrupts, (*childInterrupt).isResolved) {
		return false // it goes on, and may fail: who has ended by then would hear nothing of that
	}
	waits, room, counted := c.interruptsSoFar(ctx), 0, map[string]bool{}
	for _, a := range c.interrupts {
		if a.replied {
			continue
		}
		waits.adopt(a.waits.Suspended[0], a.waits.of(1))
		for _, b := range a.between {
			if !counted[b.CallID] {
				room, counted[b.CallID] = room+b.Size, true
			}
		}
	}
	room += roomToEnd * (1 + len(waits.Suspended) + len(counted))
	return waits.fitsWith(r.in, room)
}

// roomToEnd bounds the bytes that each suspended subagent adds to the payload when it ends, besides its state: its index,
// when it asked, and that it waits.
const roomToEnd = 80

// suspend has those end who ask, if the run can end with that. Until it is known whether it does, nobody decides
// about it, and results that come by signal wait.
func (c *children) suspend(ctx workflow.Context) {
	if !c.canSuspend(ctx) {
		return
	}
	r := c.run
	r.thread.suspend()
	var told []func()
	for _, a := range c.interrupts {
		if !a.isOpen() || a.waits.isResolved() {
			continue
		}
		a.suspended = true
		taken := c.send(ctx, a, ReplySignal{Suspends: true, Calls: a.waits.of(1).Calls})
		told = append(told, func() { c.sent(ctx, a, taken.Get(ctx, nil)) })
	}
	for _, await := range told {
		await()
	}
	ends := slices.ContainsFunc(c.interrupts, func(a *childInterrupt) bool { return !a.replied }) && !slices.ContainsFunc(c.interrupts, (*childInterrupt).isOpen)
	if !ends {
		r.thread.resume()
	}
}

// cancelInterrupts ends the wait for interrupts: nobody is going to decide. In a child the thread's workflow does so.
func (r *run) cancelInterrupts(ctx workflow.Context, all ...*Interrupts) {
	if r.child != nil {
		r.interrupts.withdraw(all...)
		return
	}
	r.interrupts.cancel(workflow.Now(ctx), all...)
}
