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
// It continues as new between turns when its history grows long, with the run that continues after
// its interrupts, and with the oldest queued run. The result is that of this execution's AG-UI run.
// An error that does not continue as new means that Temporal cancelled the execution, or that no
// terminal record is written.
func (p Programs) AgentRun(ctx workflow.Context, in runs.Input) (runs.Result, error) {
	runCtx, cancel := workflow.WithCancel(ctx) // for the run's turns; ctx is for the notifier and the wait for a successor
	t := newThread(runCtx, in, cancel)
	t.run.program, t.run.executionCtx = p.programOf(t.run, t), ctx
	if p := in.Progress; p != nil && p.Cancelled || in.Cancelled {
		t.cancel()
	}
	if err := errors.Join(t.listen(runCtx), t.upsertSearchAttributes(runCtx)); err != nil {
		return runs.Result{}, err
	}
	t.notifier.start(ctx)
	if in.Progress == nil {
		t.startTitle(ctx)
	}
	end, err := t.run.runTurns(runCtx)
	if err != nil {
		return runs.Result{}, err
	}
	// A client that has seen the terminal record in the log may send decisions before the activity
	// that wrote it reports to this workflow. So the interrupts are registered before the record is
	// written.
	t.setInterruptsAfterEnd(runCtx, t.chooseInterruptsAfterEnd(end))
	result, err := t.finish(runCtx, end)
	t.awaitTitleStart(ctx)
	if err == nil && t.interruptsAfterEnd() != nil && result.Outcome == end.outcome {
		t.interruptsAfterEnd().AnnouncedBy = result.Seq
		if t.cancelNext {
			t.interruptsAfterEnd().CancelAll(workflow.Now(ctx))
		}
		return result, t.awaitSuccessor(ctx, t.run.in.ParkDelay())
	}
	t.run.interrupts.afterEnd = nil
	if t.successor != nil { // its interrupts do not exist: the log has another end. It runs next, like a queued run
		t.queue = append([]runs.Input{*t.successor}, t.queue...)
	}
	t.notifier.drain(ctx)
	if err == nil {
		t.run.notifySchedule(ctx, runs.RunEnd{Outcome: result.Outcome, Code: result.Code})
	}
	if next := t.nextQueued(); next != nil {
		return result, continueWith(ctx, runs.TypeRun, *next)
	}
	return result, err
}
