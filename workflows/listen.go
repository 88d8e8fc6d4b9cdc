package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// maxQueue bounds the runs that wait, in bytes of the message that carries them on.
const maxQueue = 8 << 10

// listen answers who addresses the thread. Handlers decide at once and never wait; a refusal is a
// validator's, so it leaves nothing in the history.
func (r *run) listen(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateSubmit, r.submit,
		workflow.UpdateHandlerOptions{Description: "offer a run to this thread", Validator: r.judge})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateSteer, r.steer,
		workflow.UpdateHandlerOptions{Description: "say something to the active run", Validator: r.judgeSteer})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateDecide, r.decide,
		workflow.UpdateHandlerOptions{Description: "decide about calls that the thread waits for"})
	if err != nil {
		return err
	}
	if err := r.pauseOn(ctx, UpdatePause, true); err != nil {
		return err
	}
	if err := r.pauseOn(ctx, UpdateResume, false); err != nil {
		return err
	}
	signals := workflow.GetSignalChannelWithOptions(ctx, SignalCancel, workflow.SignalChannelOptions{Description: "cancel a run of this thread"})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var c Cancel
			signals.Receive(ctx, &c)
			r.heed(c)
		}
	})
	r.takeResults(ctx)
	return nil
}

// maxSteered bounds what a run is told while it is under way, over all its executions.
const maxSteered = 500

// judgeSteer refuses what cannot be told to the run any more.
func (r *run) judgeSteer(in Steer) error {
	switch {
	case r.ended || in.RunID != r.in.Run.ID:
		return temporal.NewApplicationError("the run is not active", ErrorNotActive)
	case r.steering.has(in.Input):
		return nil
	case len(r.steering.Steered) >= maxSteered, !r.fits(r.queue, Steering{append(slices.Clip(r.steering.Steered), in.Input), r.steering.Told}):
		return temporal.NewApplicationError("too much has been said to this run", ErrorTooMuchSteering)
	}
	return nil
}

// steer keeps what is said for the next model call. There will be one: a run does not end while
// something is left.
func (r *run) steer(_ workflow.Context, in Steer) (Steered, error) {
	if r.steering.has(in.Input) {
		return Steered{Repeated: true}, nil
	}
	r.steering.add(in.Input)
	return Steered{}, nil
}

// pauseOn lets an update pause the run before its next step, or go on.
func (r *run) pauseOn(ctx workflow.Context, update string, paused bool) error {
	return workflow.SetUpdateHandlerWithOptions(ctx, update,
		func(workflow.Context, Pause) (Paused, error) {
			r.paused = paused
			return Paused{RunID: r.in.Run.ID}, nil
		},
		workflow.UpdateHandlerOptions{
			Description: update + " the run before its next step",
			Validator: func(in Pause) error {
				if r.ended || in.RunID != "" && in.RunID != r.in.Run.ID {
					return temporal.NewApplicationError("the run is not active", ErrorNotActive)
				}
				return nil
			},
		})
}

// heed cancels the run if it is the one that is meant. A run that waits is not cancelled here: the
// log keeps the wish, and the run's first step finds it.
func (r *run) heed(c Cancel) {
	if c.RunID == r.in.Run.ID && !r.ended {
		r.cancel()
	}
}

// judge refuses an offer that is not taken.
func (r *run) judge(in Submit) error {
	if same, known := r.known(in); known {
		if !same {
			return temporal.NewApplicationError("the run has another input", ErrorRunIDReused)
		}
		return nil
	}
	if r.interrupts.afterEnd != nil {
		if resumes, err := r.judgeAnswer(in); resumes || err != nil {
			return err
		}
	} else if in.Offer == nil || !r.ended && in.OnBusy != OnBusyEnqueue && in.OnBusy != OnBusyInterrupt {
		return temporal.NewApplicationError("another run is active", ErrorBusy, Active{RunID: r.in.Run.ID})
	}
	queue := append(slices.Clip(r.queue), *in.Offer)
	if body, err := encode(queue); err != nil || len(body) > maxQueue || !r.fits(queue, r.steering) {
		return temporal.NewApplicationError("too many runs wait for this thread", ErrorQueueFull)
	}
	return nil
}

// known finds an offer among the run that is active and those that wait.
func (r *run) known(in Submit) (same, known bool) {
	all := append([]RunInput{r.in}, r.queue...)
	if r.resumed != nil {
		all = append(all, *r.resumed)
	}
	for _, k := range all {
		if k.Run.ID == in.RunID {
			return k.Digest == in.Digest, true
		}
	}
	return false, false
}

// submit takes an offer that judge has let pass. When the run has ended, and only its execution has
// not closed yet, nobody has to make way any more.
func (r *run) submit(ctx workflow.Context, in Submit) (Submitted, error) {
	if _, known := r.known(in); known {
		active := in.RunID == r.in.Run.ID
		return Submitted{Attached: active, Queued: !active}, nil
	}
	if r.interrupts.afterEnd != nil {
		return r.answer(ctx, in), nil
	}
	if in.OnBusy != OnBusyInterrupt {
		r.queue = append(r.queue, *in.Offer)
		return Submitted{Queued: true}, nil
	}
	r.queue = append([]RunInput{*in.Offer}, r.queue...)
	if r.ended {
		return Submitted{Queued: true}, nil
	}
	r.cancel()
	return Submitted{Queued: true, Interrupted: r.in.Run.ID}, nil
}
