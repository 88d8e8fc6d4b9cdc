package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// A branch that comes to wait for people, or for its client, asks the thread's workflow and stays as it is: its
// siblings go on, and it goes on itself as soon as it is answered, in any order.
//
//	branch                      thread's workflow
//	  │ SignalAsk ────────────▶ run.hold.v1: readers and the inbox are told
//	  │                         UpdateDecide … until all of it is answered
//	  │ ◀──────── SignalReply
//	  ▼ goes on
//
// The thread's workflow judges what is decided, counts votes and looks at the clock; the branch hears the
// result. When nothing is under way any more but questions, the branches that ask are told to end, and the run ends
// with what they ask, if there is room for it; one that is held waits. Branches of branches ask nobody: they end at once.
//
// Whoever decided was told that it counts. So a branch that is cancelled, with the run or for the failure of a
// sibling, hears before what was decided by then, and has the log tell it.

// SignalAsk and SignalReply pass between the workflow of a thread and those of branches.
const (
	SignalAsk   = "ask"
	SignalReply = "reply"
)

// Ask is what SignalAsk carries: a branch as it waits, and what for.
type Ask struct {
	Suspended Suspended `json:"suspended"`
	Waits     *Waits    `json:"waits"`
}

// Reply is what SignalReply carries.
type Reply struct {
	// Calls are what the branch has waited for, with the answers.
	Calls []Waiting `json:"calls,omitempty"`
	// Suspends tells the branch to end where it is.
	Suspends bool `json:"suspends,omitempty"`
	// Ends tells that the branch is cancelled, though that may come later.
	Ends bool `json:"ends,omitempty"`
}

// ask tells the thread's workflow what this branch waits for. over tells that the branch ends, since it could not.
func (r *run) ask(ctx workflow.Context) (end ending, over bool) {
	s := r.suspended(r.held)
	s.Fork = &r.branch.Index
	thread := workflow.GetInfo(ctx).ParentWorkflowExecution
	err := workflow.SignalExternalWorkflow(ctx, thread.ID, thread.RunID, SignalAsk, Ask{Suspended: *s, Waits: r.held}).Get(ctx, nil)
	if err != nil {
		return r.failure(ctx, err), true
	}
	return ending{}, false
}

// awaitReply waits for what the thread's workflow says, and does it. That is no time of the branch's. over
// tells that the branch ends with it.
func (r *run) awaitReply(ctx workflow.Context) (end ending, over bool) {
	since, replies := workflow.Now(ctx), workflow.GetSignalChannel(ctx, SignalReply)
	come := func() bool { return replies.Len() > 0 }
	if err := workflow.Await(ctx, come); err != nil && r.in.Version > 0 {
		lasting, _ := workflow.NewDisconnectedContext(ctx)
		_, _ = workflow.AwaitWithTimeout(lasting, replyPatience, come) // a workflow that is gone says nothing
	}
	r.waited(ctx, since)
	var reply Reply
	if replies.ReceiveAsync(&reply) {
		r.held.Calls = reply.Calls
	}
	if reply.Ends {
		ctx.Done().Receive(ctx, nil)
	}
	if w := r.held; reply.Suspends && ctx.Err() == nil {
		r.held = nil
		return ending{outcome: w.outcome(), waits: w}, true
	}
	return r.actHeld(ctx)
}

// replyPatience is how long a branch that is cancelled waits to hear what was decided.
const replyPatience = 10 * time.Second

// asking is a branch that waits beside others.
type asking struct {
	index     int
	waits     *Waits // with the branch as the first of the suspended
	replied   bool
	suspended bool // it was told to end
}

// hear takes what a branch asks, and tells readers of it.
func (f *fanOut) hear(ctx workflow.Context, in Ask) {
	if in.Suspended.Fork == nil {
		return
	}
	r := f.run
	a := &asking{index: *in.Suspended.Fork, waits: r.waitsOf(ctx, ModelAnswer{})}
	a.waits.Walk, a.waits.Round = nil, in.Waits.Round
	a.waits.adopt(in.Suspended, in.Waits)
	workflow.Go(f.ctx, func(ctx workflow.Context) { f.tellEnd(ctx, a) })
	if f.stopped() {
		return
	}
	f.asking = append(f.asking, a)
	r.beside = append(r.beside, a.waits)
	step := fmt.Sprintf("%sask/%s/%d/%d/%d", r.walk.prefix(), f.fan.Path, a.index, in.Suspended.Turn, in.Waits.Round)
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, "ask"))
	var seq uint64
	if err := workflow.ExecuteActivity(ctx, ActivityHold, Hold{Step: r.plainStep(step), Waits: a.waits}).Get(ctx, &seq); err != nil {
		f.fails(err)
		return
	}
	r.main, a.waits.After = seq, seq
	a.waits.noteOpened()
}

// ask is what a branch waits for; nil = nothing.
func (f *fanOut) ask(index int) *asking {
	i := slices.IndexFunc(f.asking, func(a *asking) bool { return a.index == index && !a.replied })
	if i < 0 {
		return nil
	}
	return f.asking[i]
}

// waiting is how many branches ask and have not been replied to.
func (f *fanOut) waiting() (n int) {
	for _, a := range f.asking {
		if !a.replied {
			n++
		}
	}
	return n
}

// await waits until a branch ends or asks, or one that asks can go on; then that is taken in.
func (f *fanOut) await(ctx workflow.Context) {
	r := f.run
	if f.waiting() == len(f.children) && !f.stopped() && (!r.in.Hold || full(ctx)) && (r.in.Version == 0 || f.fits(ctx)) {
		f.suspend(ctx)
	}
	idle, since := f.waiting() == len(f.children), workflow.Now(ctx)
	f.awaitChange(ctx)
	if idle {
		r.waited(ctx, since)
	}
	for f.changes.HasPending() {
		f.changes.Select(ctx)
	}
	if f.late(ctx) && f.waiting() > 0 {
		f.expired = true
		f.end()
	}
	for _, a := range f.asking {
		if a.waits.pass(workflow.Now(ctx)); a.waits.settled() && !a.replied && !a.suspended {
			f.reply(ctx, a, Reply{Calls: a.waits.of(1).Calls})
			a.replied = true
		}
	}
}

// awaitChange waits until there is something to take in. Cancelled branches end, so it needs no context that does.
func (f *fanOut) awaitChange(ctx workflow.Context) {
	lasting, _ := workflow.NewDisconnectedContext(ctx)
	var until time.Time
	for _, a := range f.asking {
		if !a.replied && !a.suspended && !f.stopped() {
			until = earlier(until, earlier(a.waits.next(), f.fan.Deadline))
		}
	}
	ready := func() bool {
		return f.changes.HasPending() || slices.ContainsFunc(f.asking, func(a *asking) bool { return !a.replied && !a.suspended && a.waits.settled() })
	}
	if until.IsZero() {
		_ = workflow.Await(lasting, ready)
		return
	}
	_, _ = workflow.AwaitWithTimeout(lasting, max(until.Sub(workflow.Now(ctx)), 0), ready)
}

// fits tells whether a run can end with all that branches ask, and go on with it. One that cannot goes on until so much
// is answered that it can.
func (f *fanOut) fits(ctx workflow.Context) bool {
	waits := f.run.waitsOf(ctx, ModelAnswer{})
	for _, s := range f.suspended {
		waits.adopt(*s.Suspended, s.Waits)
	}
	for _, a := range f.asking {
		if !a.replied {
			waits.adopt(a.waits.Suspended[0], a.waits.of(1))
		}
	}
	return waits.fits(f.run.in)
}

// tellEnd tells a branch that asks what was decided, when it is cancelled.
func (f *fanOut) tellEnd(ctx workflow.Context, a *asking) {
	ctx.Done().Receive(ctx, nil)
	child := f.children[a.index]
	if a.replied || a.suspended || child == nil || f.run.in.Version == 0 {
		return
	}
	a.replied = true
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	child.SignalChildWorkflow(ctx, SignalReply, Reply{Ends: true, Calls: a.waits.of(1).Calls})
}

// suspend has the branches end that ask. Until it is known whether the run ends with what they ask, nobody decides
// about it; but results come by signal, too, and a branch whose answers are all there goes on with them.
func (f *fanOut) suspend(ctx workflow.Context) {
	f.run.moving = true
	for _, a := range f.asking {
		if !a.replied && !a.suspended && !a.waits.settled() {
			a.suspended = true
			f.reply(ctx, a, Reply{Suspends: true, Calls: a.waits.of(1).Calls})
		}
	}
	f.run.moving = f.waiting() > 0 && !slices.ContainsFunc(f.asking, func(a *asking) bool { return !a.replied && !a.suspended })
}

func (f *fanOut) reply(ctx workflow.Context, a *asking, reply Reply) {
	err := f.children[a.index].SignalChildWorkflow(ctx, SignalReply, reply).Get(ctx, nil)
	if err != nil && !temporal.IsCanceledError(err) && ctx.Err() == nil { // cancelled: it ends without
		f.fails(err)
	}
}

// conclude is done with what a branch has asked that has ended. If it waits still, it is for what people have not
// said by now.
func (f *fanOut) conclude(index int, answer *ToolAnswer) {
	waits := answer.Suspended != nil
	if a := f.ask(index); a != nil && waits {
		answer.Waits = a.waits.of(1)
		answer.Waits.Noticed = a.waits.Noticed
	}
	f.asking = slices.DeleteFunc(f.asking, func(a *asking) bool {
		switch {
		case a.index != index:
			return false
		case waits:
			f.run.moved = append(f.run.moved, a.waits)
			f.run.retire(a.waits)
		default:
			f.run.close(f.ctx, a.waits)
		}
		return true
	})
}

// retire takes answers to what branches have asked no longer. What there is to tell of it is told.
func (r *run) retire(asked ...*Waits) {
	r.beside = slices.DeleteFunc(r.beside, func(w *Waits) bool { return slices.Contains(asked, w) })
	asked = slices.DeleteFunc(slices.Clone(asked), func(w *Waits) bool { return slices.Contains(r.earlier, w) })
	r.earlier = slices.DeleteFunc(append(r.earlier, asked...), (*Waits).isTold)
}

// close is retire for good: nobody is going to decide about what is open of it, and people are told.
func (r *run) close(ctx workflow.Context, asked ...*Waits) {
	if r.branch == nil && r.in.Version > 0 {
		for _, w := range asked {
			w.close(workflow.Now(ctx))
		}
	}
	r.retire(asked...)
}
