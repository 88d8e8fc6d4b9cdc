package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// advance reports how the active step ended, and moves the position to the next.
func (p interpreter) advance(ctx workflow.Context) (runs.Advanced, error) {
	w, step := p.position, p.nextStep()
	w.Advances++
	if p.chained != nil {
		return p.takeChained(ctx), nil
	}
	in := runs.Advance{Step: step, Position: *w, Tree: p.tree, Day: p.run.dayAllowance()}
	p.tree = nil
	var next runs.Advanced
	err := p.runAdvance(ctx, in, &next)
	if ctx.Err() != nil && err != nil && p.run.log.HasBegun() {
		err = p.advanceAfterCancel(ctx, in, &next)
	}
	if err != nil {
		return next, err
	}
	if in.Tree != nil {
		w.Tree = next.Seq
	}
	event := w.Event
	p.setPosition(ctx, next)
	if next.CallEnded {
		w.ReplaceEvent(next, event)
	}
	return next, nil
}

// nextStep returns the step of the next advance.
func (p interpreter) nextStep() runs.Step {
	return p.run.ownStep(fmt.Sprintf("%sadvance/%d", p.position.Prefix(), p.position.Advances+1))
}

// setPosition moves the position to what an advance has found.
func (p interpreter) setPosition(ctx workflow.Context, next runs.Advanced) {
	w := p.position
	if until := workflow.Now(ctx).Add(compensationTime); w.Cursor.Undoing == nil && next.Cursor.Undoing != nil && p.run.budget.Deadline.Before(until) {
		p.run.budget.Deadline = until
	}
	w.Cursor, w.Active, w.Branches, w.Answer, w.Event, w.Answered, w.Wake, w.Exceeded = next.Cursor, next.Active, next.Branches, next.Answer, nil, "", time.Time{}, next.Exceeded
	if next.Sleep > 0 {
		w.Wake = workflow.Now(ctx).Add(next.Sleep)
	}
}

// advanceAfterCancel finds out whether a cancelled advance was recorded: compensation must come
// after it.
func (p interpreter) advanceAfterCancel(ctx workflow.Context, in runs.Advance, next *runs.Advanced) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in.Compensates = true
	options := p.run.options(ctx, "next step")
	options.ScheduleToCloseTimeout = cancelPatience
	return p.runAdvanceWith(ctx, options, in, next)
}

// cancelPatience bounds advanceAfterCancel.
const cancelPatience = 5 * time.Second

func (p interpreter) runAdvance(ctx workflow.Context, in runs.Advance, next *runs.Advanced) error {
	options := p.run.options(ctx, "next step")
	// The time of the step that has ended, or of the run, may be over: that is what the advance is
	// to deal with, and where it is disturbed, by a log that is down say, it has to have the time
	// to.
	left := max(p.run.budget.Deadline.Sub(workflow.Now(ctx)), compensationTime)
	options.ScheduleToCloseTimeout, options.StartToCloseTimeout = left, left
	return p.runAdvanceWith(ctx, options, in, next)
}

func (p interpreter) runAdvanceWith(ctx workflow.Context, options workflow.ActivityOptions, in runs.Advance, next *runs.Advanced) error {
	if opens, announces := p.run.opening(); !p.run.log.HasBegun() && announces != nil {
		in.Announces = announces
	} else if !p.run.log.HasBegun() && opens != nil {
		in.Beginning = *opens
	}
	if p.run.log.Failed != nil {
		in.Closes = p.run.log.Failed.Name
	}
	in.Unfinished, in.FailedStep, in.Now = p.run.log.Unfinished, p.run.log.Failed, workflow.Now(ctx)
	ctx = workflow.WithActivityOptions(ctx, options)
	if err := workflow.ExecuteActivity(ctx, runs.ActivityAdvance, in).Get(ctx, next); err != nil {
		return err
	}
	for _, u := range next.Usage {
		p.run.use(u)
	}
	p.run.log.TakeOver(next.Seq)
	return nil
}
