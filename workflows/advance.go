package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// This file schedules pipeline.advance, which records how the active step ended and finds the next
// one. All uses of the activity go through runAdvanceWith: advances, reopening, suspending, and
// values of a program.

// advance reports how the active step ended (position.Event), and moves the position to the next.
// The caller handles the end of the pipeline (AdvanceResult.IsEnd). After an error the position
// keeps the event.
//
// If the run is cancelled meanwhile, advance returns the advance that the activity has recorded, or
// lets the activity make it, so that compensation knows all finished steps.
func (p pipelineExecutor) advance(ctx workflow.Context) (runs.AdvanceResult, error) {
	pos, step := p.position, p.nextStep()
	pos.Advances++
	in := runs.AdvanceInput{Step: step, Position: *pos, Tree: p.tree, Day: p.run.dayAllowance()}
	// The tree is sent once. If this advance fails, so does the program's step.
	p.tree = nil
	var next runs.AdvanceResult
	err := p.runAdvance(ctx, in, &next)
	if ctx.Err() != nil && err != nil && p.run.log.HasBegun() {
		err = p.advanceAfterCancel(ctx, in, &next)
	}
	if err != nil {
		return next, err
	}
	if in.Tree != nil {
		pos.Tree = next.Seq
	}
	p.setPosition(ctx, next)
	return next, nil
}

// nextStep returns the step of the next advance. Its ID counts the advances.
func (p pipelineExecutor) nextStep() runs.Step {
	return p.run.ownStep(fmt.Sprintf("%sadvance/%d", p.position.Prefix(), p.position.Advances+1))
}

// setPosition moves the position to what an advance has found, and clears the event. When
// compensation of a failed pipeline begins, it extends the run's deadline to leave time for it.
func (p pipelineExecutor) setPosition(ctx workflow.Context, next runs.AdvanceResult) {
	pos := p.position
	if until := workflow.Now(ctx).Add(compensationTime); pos.TreePosition.Undoing == nil && next.TreePosition.Undoing != nil && p.run.budget.Deadline.Before(until) {
		p.run.budget.Deadline = until
	}
	pos.TreePosition = next.TreePosition
	pos.Active, pos.Branches, pos.Answer = next.Active, next.Branches, next.Answer
	pos.Event, pos.Answered, pos.Result, pos.Wake = nil, "", 0, time.Time{}
	pos.Exceeded = next.Exceeded
	if next.Sleep > 0 {
		pos.Wake = workflow.Now(ctx).Add(next.Sleep)
	}
}

// advanceAfterCancel repeats a cancelled advance with the same step ID, detached from the cancel.
// The activity returns what the first attempt recorded, or makes the advance: compensation must
// follow it in the log.
func (p pipelineExecutor) advanceAfterCancel(ctx workflow.Context, in runs.AdvanceInput, next *runs.AdvanceResult) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in.Compensates = true
	e := p.run.scheduling(ctx, runs.ActivityAdvance, "next step")
	e.options = func() workflow.ActivityOptions {
		options := p.run.options(ctx, "next step")
		options.ScheduleToCloseTimeout = cancelTimeout
		return options
	}
	return p.runAdvanceWith(ctx, e, in, next)
}

// cancelTimeout bounds advanceAfterCancel.
const cancelTimeout = 5 * time.Second

// runAdvance schedules pipeline.advance with the usual options. It blocks until the activity ends.
func (p pipelineExecutor) runAdvance(ctx workflow.Context, in runs.AdvanceInput, next *runs.AdvanceResult) error {
	e := p.run.scheduling(ctx, runs.ActivityAdvance, "next step")
	// The deadline of the step that ended, or of the run, may have passed: the advance has to deal
	// with that. It gets time for it, also if NATS is unavailable for a while.
	e.options = func() workflow.ActivityOptions {
		options := p.run.options(ctx, "next step")
		left := max(p.run.budget.Deadline.Sub(workflow.Now(ctx)), compensationTime)
		options.ScheduleToCloseTimeout, options.StartToCloseTimeout = left, left
		return options
	}
	return p.runAdvanceWith(ctx, e, in, next)
}

// runAdvanceWith schedules pipeline.advance and applies what every use of it has in common. The
// input gets the opening of a run that has not begun, and what earlier steps left open. The
// output's usage is counted, and its record becomes the last one of the main lane.
func (p pipelineExecutor) runAdvanceWith(ctx workflow.Context, e scheduling, in runs.AdvanceInput, next *runs.AdvanceResult) (err error) {
	if opens, announces := p.run.firstStepOpening(); !p.run.log.HasBegun() && announces != nil {
		in.Announces = announces
	} else if !p.run.log.HasBegun() && opens != nil {
		in.Beginning = *opens
	}
	if p.run.log.Failed != nil {
		in.Closes = p.run.log.Failed.Name
	}
	// What a program does next depends on its own code: a repeated task may do another step under the
	// same number. So a step of a program begins when the history has the end of the one before.
	e.awaitsTask = e.awaitsTask || in.Tree != nil || in.Expression != "" || in.EvaluatesResult
	in.Unfinished, in.FailedStep, in.Now = p.run.log.Unfinished, p.run.log.Failed, workflow.Now(ctx)
	if *next, err = executeStep[runs.AdvanceResult](ctx, in, e); err != nil {
		return err
	}
	for _, u := range next.Usage {
		p.run.use(u)
	}
	p.run.log.TakeOver(next.Seq)
	return nil
}
