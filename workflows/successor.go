package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// awaitSuccessor blocks, after the end of an AG-UI run, until all of its interrupts are decided;
// then another run continues. An input that answers them brings that run. If decisions arrive one
// by one, or expire, a run without an input continues. After parkDelay the thread is parked; 0 = it
// is parked already.
//
// The error parks the thread, or is that of a cancelled execution. Without one, takeSuccessor has
// the next run, except if the thread is free (t.closing): then the API starts the run of the last
// input in a new execution.
func (t *thread) awaitSuccessor(ctx workflow.Context, parkDelay time.Duration) error {
	set, until := t.interruptsAfterEnd(), time.Time{}
	if parkDelay > 0 {
		until = workflow.Now(ctx).Add(parkDelay)
	}
	for t.successor == nil && !set.IsResolved() {
		if err := t.awaitDecision(ctx, runs.Earlier(set.NextTime(), until)); err != nil {
			return err
		}
		now := workflow.Now(ctx)
		set.ApplyTime(now)
		parks := parkDelay > 0 && !now.Before(until) || historyIsLong(ctx)
		if !parks || t.successor != nil || set.IsResolved() {
			continue
		}
		t.notifier.stop(ctx)
		if t.awaitResults(ctx); t.successor == nil && !set.IsResolved() { // the stored results may resolve set
			in := t.run.in
			in.Queue, in.Resume = t.queue, nil
			return continueWith(ctx, runs.TypeParked, runs.ParkedInput{Run: in, Interrupts: set})
		}
	}
	if t.closing {
		t.notifier.drain(ctx)
		t.run.notifySchedule(ctx, runs.RunEnd{})
	}
	return nil
}

// takeSuccessor returns the run that continues after the interrupts, with these and the queue. It
// may block before it chooses the run.
func (t *thread) takeSuccessor(ctx workflow.Context) *runs.Input {
	if t.chooseSuccessor(ctx).FiringID != t.run.in.FiringID { // the successor works for another time of a schedule
		t.run.notifySchedule(ctx, runs.RunEnd{})
	}
	next := t.chooseSuccessor(ctx)
	next.Resume, next.Queue, next.BegunBy = t.interruptsAfterEnd(), t.queue, workflow.GetInfo(ctx).OriginalRunID
	return next
}

// awaitDecision blocks until the thread has a successor, all interrupts are decided, or a time
// (zero = without limit). Except with a program, it also returns when the history has grown long.
// The error is that of ctx.
func (t *thread) awaitDecision(ctx workflow.Context, until time.Time) error {
	ready := func() bool {
		return t.successor != nil || t.interruptsAfterEnd().IsResolved() || historyIsLong(ctx) && t.run.in.Program == ""
	}
	if until.IsZero() {
		return workflow.Await(ctx, ready)
	}
	_, err := workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), ready)
	return err
}

// chooseSuccessor returns the run that an input brought, or one without an input, which continues
// the run that ended. The ID of the latter derives from this execution and its run: it is the same
// in a replay, and unique in the thread.
func (t *thread) chooseSuccessor(ctx workflow.Context) *runs.Input {
	if t.successor != nil {
		return t.successor
	}
	in := &t.run.in
	next := *in
	if h := next.HandedOver; h != nil { // a handoff narrowed the limits for that run only
		next.Limits = h.To.Limits
	}
	next.Run.ID = "run_" + digest(13, in.Run.ID+"\n"+workflow.GetInfo(ctx).OriginalRunID)
	next.Token, next.Continues = next.Run.ID, in.Run.ID
	next.Input, next.Digest, next.BeginsTitle = 0, "", false
	next.Resume, next.Cancelled = nil, t.cancelNext
	return &next
}
