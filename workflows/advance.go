package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

// advance tells what has come of the last thing to do, and takes up the next one.
func (r *run) advance(ctx workflow.Context) (Advanced, error) {
	w, step := r.walk, r.nextStep()
	w.Advances++
	if r.ahead != nil {
		return r.goAhead(ctx), nil
	}
	in := Advance{Step: step, Walk: *w, Tree: r.tree, Day: r.day()}
	r.tree = nil
	var next Advanced
	err := r.runAdvance(ctx, in, &next)
	if ctx.Err() != nil && err != nil && r.log.begun() {
		err = r.advanceAgain(ctx, in, &next)
	}
	if err != nil {
		return next, err
	}
	if in.Tree != nil {
		w.Tree = next.Seq
	}
	event := w.Event
	r.moveOn(ctx, next)
	if next.Called {
		w.afterAll(next, event)
	}
	return next, nil
}

// nextStep is that of the next advance.
func (r *run) nextStep() Step {
	return r.plainStep(fmt.Sprintf("%sadvance/%d", r.walk.prefix(), r.walk.Advances+1))
}

// moveOn takes up the next thing to do.
func (r *run) moveOn(ctx workflow.Context, next Advanced) {
	w := r.walk
	if until := workflow.Now(ctx).Add(undoing); w.Cursor.Undoing == nil && next.Cursor.Undoing != nil && r.budget.Deadline.Before(until) {
		r.budget.Deadline = until
	}
	w.Cursor, w.Leaf, w.Fan, w.Answer, w.Event, w.Said, w.Wake, w.Excess = next.Cursor, next.Leaf, next.Fan, next.Answer, nil, "", time.Time{}, next.Excess
	if next.Sleep > 0 {
		w.Wake = workflow.Now(ctx).Add(next.Sleep)
	}
}

// advanceAgain finds out what has come of an advance that was cancelled: it may have been written down, and
// what is done about the cancel has to come behind it.
func (r *run) advanceAgain(ctx workflow.Context, in Advance, next *Advanced) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in.Undoes = true
	options := r.options(ctx, "next step")
	options.ScheduleToCloseTimeout = again
	return r.runAdvanceWith(ctx, options, in, next)
}

// again bounds it: what it waits for may not come.
const again = 5 * time.Second

func (r *run) runAdvance(ctx workflow.Context, in Advance, next *Advanced) error {
	options := r.options(ctx, "next step")
	// The time of the step that has ended, or of the run, may be over: that is what the advance is to deal with, and where it
	// is disturbed, by a log that is down say, it has to have the time to.
	left := max(r.budget.Deadline.Sub(workflow.Now(ctx)), undoing)
	options.ScheduleToCloseTimeout, options.StartToCloseTimeout = left, left
	return r.runAdvanceWith(ctx, options, in, next)
}

func (r *run) runAdvanceWith(ctx workflow.Context, options workflow.ActivityOptions, in Advance, next *Advanced) error {
	if opens, announces := r.opens(); !r.log.begun() && announces != nil {
		in.Announces = announces
	} else if !r.log.begun() && opens != nil {
		in.Beginning = *opens
	}
	if r.log.Failed != nil {
		in.Closes = r.log.Failed.Name
	}
	in.Lanes, in.FailedStep, in.Now = r.log.Unfinished, r.log.Failed, workflow.Now(ctx)
	ctx = workflow.WithActivityOptions(ctx, options)
	if err := workflow.ExecuteActivity(ctx, ActivityAdvance, in).Get(ctx, next); err != nil {
		return err
	}
	for _, u := range next.Usage {
		r.use(u)
	}
	r.log.takeOver(next.Seq)
	return nil
}
