package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// AgentRun is agent.run.v1: turns of model and tools until the model is done, a limit is reached,
// the run is cancelled or a step fails for good. It continues as new between turns when its history
// grows long, and at its end with the run that waits longest for its thread.
func (p Programs) AgentRun(ctx workflow.Context, in runs.Input) (runs.Result, error) {
	running, cancel := workflow.WithCancel(ctx) // the run: a cancel does not end the wait after its end
	t := newThread(running, in, cancel)
	t.run.program, t.run.executionCtx = p.of(t.run, t), ctx
	if p := in.Progress; p != nil && p.Cancelled || in.Cancelled {
		t.cancel()
	}
	if err := errors.Join(t.listen(running), t.rename(running)); err != nil {
		return runs.Result{}, err
	}
	t.notifier.start(ctx)
	end, err := t.run.turns(running)
	if err != nil {
		return runs.Result{}, err
	}
	// A client that has seen the end in the log may answer before the activity that wrote it
	// reports here.
	t.awaitBehind(running, t.waitsBehind(end))
	result, err := t.finish(running, end)
	if err == nil && t.open() != nil && result.Outcome == end.outcome {
		t.open().After = result.Seq
		if t.cancelNext {
			t.open().CancelAll(workflow.Now(ctx))
		}
		return result, t.awaitSuccessor(ctx, t.run.in.ParkPatience())
	}
	t.run.interrupts.afterEnd = nil
	if t.successor != nil { // it was to continue with answers to interrupts that the run did not end with
		t.queue = append([]runs.Input{*t.successor}, t.queue...)
	}
	t.notifier.drain(ctx)
	if err == nil {
		t.run.notifySchedule(ctx, runs.Ended{Outcome: result.Outcome, Code: result.Code})
	}
	if next := t.next(); next != nil {
		return result, continueWith(ctx, runs.TypeRun, *next)
	}
	return result, err
}
