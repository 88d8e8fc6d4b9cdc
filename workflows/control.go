package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// listen registers the handlers of the thread's updates and signals, for both agent.run and
// thread.parked. Validators refuse updates, so a refusal leaves no event in the history. listen
// does not block; the coroutines that receive signals last as long as the execution.
func (t *thread) listen(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, runs.UpdateSubmit, t.submit,
		workflow.UpdateHandlerOptions{Description: "offer a run to this thread", Validator: t.validateSubmit})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, runs.UpdateSteer, t.steer,
		workflow.UpdateHandlerOptions{Description: "send a message to the active run", Validator: t.validateSteer})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, runs.UpdateDecide, t.decide,
		workflow.UpdateHandlerOptions{Description: "decide open interrupts of this thread"})
	if err != nil {
		return err
	}
	if err := t.registerPauseHandler(ctx, runs.UpdatePause, true); err != nil {
		return err
	}
	if err := t.registerPauseHandler(ctx, runs.UpdateResume, false); err != nil {
		return err
	}
	signals := workflow.GetSignalChannelWithOptions(ctx, runs.SignalCancel, workflow.SignalChannelOptions{Description: "cancel a run of this thread"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var c runs.CancelRequest
			signals.Receive(ctx, &c)
			t.handleCancel(c)
		}
	})
	t.receiveResults(ctx)
	return nil
}

// maxSteered bounds the steering messages of a run, over all its executions.
const maxSteered = 500

// validateSteer refuses steering for a run that is not active, and steering beyond maxSteered or a
// payload. A repeated message passes.
func (t *thread) validateSteer(in runs.SteerRequest) error {
	steering := t.run.control.steering
	switch {
	case !t.isActive(in.RunID):
		return temporal.NewApplicationError("the run is not active", runs.ErrorNotActive)
	case steering.Has(in.Input):
		return nil
	case len(steering.Steered) >= maxSteered, !t.fits(t.queue, runs.Steering{Steered: append(slices.Clip(steering.Steered), in.Input), Delivered: steering.Delivered}):
		return temporal.NewApplicationError("the run has reached its limit of steering messages", runs.ErrorTooMuchSteering)
	}
	return nil
}

// steer keeps a message for the next model call. There will be one: a run does not end by itself
// before a model call has received all steering.
func (t *thread) steer(ctx workflow.Context, in runs.SteerRequest) (runs.SteerResult, error) {
	if t.run.control.steering.Has(in.Input) {
		return runs.SteerResult{Repeated: true}, nil
	}
	t.noteUpdate(ctx)
	t.run.control.steering.Add(in.Input)
	return runs.SteerResult{}, nil
}

// registerPauseHandler registers the update that sets whether the run is paused. A paused run
// blocks at its next safe point; a turn that is under way ends first.
func (t *thread) registerPauseHandler(ctx workflow.Context, update string, paused bool) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, update,
		func(workflow.Context, runs.PauseRequest) (runs.PauseResult, error) {
			t.run.control.paused = paused
			return runs.PauseResult{RunID: t.run.in.Run.ID}, nil
		},
		workflow.UpdateHandlerOptions{
			Description: update + " the run before its next step",
			Validator: func(in runs.PauseRequest) error {
				if t.phase.isEnding() || in.RunID != "" && !t.isActive(in.RunID) {
					return temporal.NewApplicationError("the run is not active", runs.ErrorNotActive)
				}
				return nil
			},
		})
}

// handleCancel cancels the run if it is the active one. For a queued run it does nothing: the API
// has also written the request to the log, and the run's first step finds it there.
func (t *thread) handleCancel(c runs.CancelRequest) {
	if t.isActive(c.RunID) {
		t.cancel()
	}
}

// isActive reports whether a run is the thread's and is not ending or over.
func (t *thread) isActive(runID string) bool { return !t.phase.isEnding() && runID == t.run.in.Run.ID }
