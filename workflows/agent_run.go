package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// AgentRun is agent.run.v1: turns of model and tools until the model is done, a limit is reached,
// the run is cancelled or a step fails for good. After the end it waits for decisions about the
// run's interrupts.
//
// The run that continues after the interrupts, and the oldest queued run, begin in this execution
// if it is young. Otherwise AgentRun continues as new with them, as it does between turns when its
// history grows long. The result is that of the execution's last AG-UI run. An error that does not
// continue as new means that Temporal cancelled the execution, or that no terminal record is
// written.
func (p Programs) AgentRun(ctx workflow.Context, in runs.Input) (runs.Result, error) {
	t := newThread(ctx, in)
	t.run.program = p.programOf(t.run, t)
	runCtx := t.withCancel(ctx)
	if in.Cancelled || in.Progress != nil && in.Progress.Cancelled {
		t.cancel()
	}
	if err := errors.Join(t.listen(ctx), t.upsertSearchAttributes(ctx)); err != nil {
		return runs.Result{}, err
	}
	t.notifier.start(ctx)
	if in.Progress == nil {
		t.startTitle(ctx)
	}
	for {
		result, next, err := t.executeRun(ctx, runCtx)
		switch {
		case next == nil:
			return result, err
		case !t.isYoung(ctx):
			return result, continueWith(ctx, runs.TypeRun, *next)
		}
		runCtx = t.withCancel(ctx)
		if next.Trace != "" && next.Trace != in.Trace {
			runCtx = workflow.WithValue(runCtx, runs.TraceKey{}, next.Trace)
		}
		t.continueAs(ctx, *next)
		t.startTitle(runCtx)
	}
}

// executeRun executes the AG-UI run from where it is to its end, and blocks until the thread has
// another run or needs none. runCtx is for the run's turns; ctx is for the wait. next is the run
// that follows; nil = the execution ends with the result and err. If next is not nil, nothing may
// block before it begins: an input that arrived meanwhile would be lost.
func (t *thread) executeRun(ctx, runCtx workflow.Context) (result runs.Result, next *runs.Input, err error) {
	end, err := t.run.runTurns(runCtx)
	if err != nil {
		return runs.Result{}, nil, err
	}
	// A lost workflow task has ended the run with its interrupts, before it was cancelled.
	t.cancelNext = t.cancelNext || end.interrupts != nil && runCtx.Err() != nil
	// A client that has seen the terminal record in the log may send decisions before the activity
	// that wrote it reports to this workflow. So the interrupts are registered before the record is
	// written.
	t.setInterruptsAfterEnd(runCtx, t.chooseInterruptsAfterEnd(end))
	result, err = t.finish(runCtx, end)
	t.awaitTitleStart(ctx)
	if err == nil && t.interruptsAfterEnd() != nil && result.Outcome == end.outcome {
		t.announceInterruptsAfterEnd(ctx, result.Seq)
		if err := t.awaitSuccessor(ctx, t.run.in.ParkDelay()); err != nil || t.closing {
			return result, nil, err
		}
		if !t.isYoung(ctx) {
			t.notifier.stop(ctx)
		}
		return result, t.takeSuccessor(ctx), nil
	}
	t.run.interrupts.afterEnd = nil
	if t.successor != nil { // its interrupts do not exist: the log has another end. It runs next, like a queued run
		t.queue = append([]runs.Input{*t.successor}, t.queue...)
	}
	if err == nil {
		t.run.notifySchedule(ctx, runs.RunEnd{Outcome: result.Outcome, Code: result.Code})
	}
	if len(t.queue) == 0 || !t.isYoung(ctx) {
		t.notifier.drain(ctx)
	}
	return result, t.nextQueued(), err
}
