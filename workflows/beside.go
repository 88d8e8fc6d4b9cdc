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
// with what they ask; one that is held waits. Branches of branches ask nobody: they end at once.

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
	var reply Reply
	since := workflow.Now(ctx)
	workflow.NewSelector(ctx).
		AddReceive(workflow.GetSignalChannel(ctx, SignalReply), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &reply) }).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {}).
		Select(ctx)
	r.waited(ctx, since)
	if ctx.Err() != nil {
		return r.actHeld(ctx)
	}
	if r.held.Calls = reply.Calls; reply.Suspends {
		w := r.held
		r.held = nil
		return ending{outcome: w.outcome(), waits: w}, true
	}
	return r.actHeld(ctx)
}

// asking is a branch that waits beside others.
type asking struct {
	index     int
	waits     *Waits // with the branch as the first of the suspended
	replied   bool
	suspended bool // it was told to end
}

// hear takes what a branch asks, and tells readers of it.
func (f *fanOut) hear(ctx workflow.Context, in Ask) {
	if f.stopped() || in.Suspended.Fork == nil {
		return // the branch is about to end
	}
	r := f.run
	a := &asking{index: *in.Suspended.Fork, waits: r.waitsOf(ctx, ModelAnswer{})}
	a.waits.Walk, a.waits.Round = nil, in.Waits.Round
	a.waits.adopt(in.Suspended, in.Waits)
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
	if f.waiting() == len(f.children) && !f.stopped() && (!r.in.Hold || full(ctx)) {
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

// suspend has the branches end that ask. One whose answers come while others are told goes on with them.
func (f *fanOut) suspend(ctx workflow.Context) {
	for _, a := range f.asking {
		if !a.replied && !a.suspended && !a.waits.settled() {
			a.suspended = true
			f.reply(ctx, a, Reply{Suspends: true, Calls: a.waits.of(1).Calls})
		}
	}
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
	if a := f.ask(index); a != nil && answer.Suspended != nil {
		answer.Waits = a.waits.of(1)
		answer.Waits.Noticed = a.waits.Noticed
	}
	f.asking = slices.DeleteFunc(f.asking, func(a *asking) bool {
		if a.index == index {
			f.run.retire(a.waits)
		}
		return a.index == index
	})
}

// retire takes answers to what branches have asked no longer. What there is to tell of it is told.
func (r *run) retire(asked ...*Waits) {
	r.beside = slices.DeleteFunc(r.beside, func(w *Waits) bool { return slices.Contains(asked, w) })
	r.earlier = slices.DeleteFunc(append(r.earlier, asked...), (*Waits).isTold)
}
