package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// validateSubmit refuses an offer that the thread does not take.
func (t *thread) validateSubmit(in runs.Submit) error {
	if same, known := t.findOffer(in); known {
		if !same {
			return temporal.NewApplicationError("the run has another input", runs.ErrorRunIDReused)
		}
		return nil
	}
	if t.open() != nil {
		if resumes, err := t.validateAnswer(in); resumes || err != nil {
			return err
		}
	} else if in.Offer == nil || !t.phase.isOver() && in.OnBusy != runs.OnBusyEnqueue && in.OnBusy != runs.OnBusyInterrupt {
		active := runs.Active{RunID: t.run.in.Run.ID, Waiting: t.run.interrupts.open(in.Decisions)}
		return temporal.NewApplicationError("another run is active", runs.ErrorBusy, active)
	}
	queue := append(slices.Clip(t.queue), *in.Offer)
	if body, err := runs.Encode(queue); err != nil || len(body) > runs.MaxQueue || !t.fits(queue, t.run.control.steering) {
		return temporal.NewApplicationError("too many runs wait for this thread", runs.ErrorQueueFull)
	}
	return nil
}

// findOffer finds an offer among the run that is active and those that wait.
func (t *thread) findOffer(in runs.Submit) (same, known bool) {
	all := append([]runs.Input{t.run.in}, t.queue...)
	if t.successor != nil {
		all = append(all, *t.successor)
	}
	for _, k := range all {
		if k.Run.ID == in.RunID {
			return k.Digest == in.Digest, true
		}
	}
	return false, false
}

// submit takes an offer that validateSubmit has let pass. A run that has ended need not be
// interrupted, although its execution has not closed yet.
func (t *thread) submit(ctx workflow.Context, in runs.Submit) (runs.Submitted, error) {
	if _, known := t.findOffer(in); known {
		active := in.RunID == t.run.in.Run.ID
		return runs.Submitted{Attached: active, Queued: !active}, nil
	}
	if t.open() != nil {
		return t.answer(ctx, in), nil
	}
	if in.OnBusy != runs.OnBusyInterrupt {
		return t.enqueue(in), nil
	}
	t.queue = append([]runs.Input{*in.Offer}, t.queue...)
	if t.phase.isOver() {
		return runs.Submitted{Queued: true}, nil
	}
	t.cancel()
	return runs.Submitted{Queued: true, Interrupted: t.run.in.Run.ID}, nil
}

func (t *thread) enqueue(in runs.Submit) runs.Submitted {
	t.queue = append(t.queue, *in.Offer)
	return runs.Submitted{Queued: true}
}

// validateAnswer refuses an offer that leaves an interrupt open which people decide about: a new
// input does not give it up. The client's own tool calls it may leave. resumes tells whether the
// thread continues with the offer, as opposed to queueing it.
func (t *thread) validateAnswer(in runs.Submit) (resumes bool, err error) {
	w, then := t.open(), t.onOpen(in)
	switch {
	case t.closing || t.frees(in):
		return true, nil
	case t.successor == nil && w.IsResolved() && w.Contradicts(in.Decisions):
		return false, temporal.NewApplicationError("others have decided, and the thread goes on", runs.ErrorBusy, runs.Active{RunID: t.run.in.Run.ID})
	case t.successor != nil && in.OnBusy != runs.OnBusyEnqueue:
		return false, temporal.NewApplicationError("another run is active", runs.ErrorBusy, runs.Active{RunID: t.successor.Run.ID})
	case in.Offer == nil || then == runs.OpenReject:
		return false, t.refusal(in)
	case then == runs.OpenQueue || t.successor != nil:
		return false, nil
	}
	next := t.run.in.HandedOver.Redirect(*in.Offer)
	next.Resume, next.Queue, next.Fire = w, t.queue, cmp.Or(in.Offer.Fire, t.run.in.Fire)
	body, err := runs.Encode(next)
	if err != nil || !w.FitsAnswered(len(body), len(in.Decisions)) {
		return false, temporal.NewApplicationError("the run's id leaves too little room for those that wait", runs.ErrorQueueFull)
	}
	return true, nil
}

// answer takes an offer that validateAnswer has let pass. Its decisions count also where a quorum
// needs more of them: then the interrupts stay open, and the thread does not continue with the
// offer.
func (t *thread) answer(ctx workflow.Context, in runs.Submit) runs.Submitted {
	if t.closing = t.closing || t.frees(in); t.closing {
		t.takeAnswers(ctx, in)
		return runs.Submitted{Closing: true}
	}
	if t.successor != nil || t.onOpen(in) == runs.OpenQueue {
		return t.enqueue(in)
	}
	if open := t.takeAnswers(ctx, in); open {
		if in.OnBusy != runs.OnBusyEnqueue {
			return runs.Submitted{Open: true}
		}
		return t.enqueue(in)
	}
	next := t.run.in.HandedOver.Redirect(*in.Offer)
	t.successor = &next
	t.successor.Fire = cmp.Or(in.Offer.Fire, t.run.in.Fire)
	return runs.Submitted{Queued: true}
}

// takeAnswers takes the decisions and results of an offer, and abandons the client's tool calls
// that it leaves. What was decided before stands. open tells that a quorum needs more approvals:
// then nothing else is taken.
func (t *thread) takeAnswers(ctx workflow.Context, in runs.Submit) (open bool) {
	w, now := t.open(), workflow.Now(ctx)
	w.DecideAll(in.Decisions, now, (*runs.Interrupt).AsksPeople)
	w.ApplyTime(now)
	if _, asks := w.Open(); asks {
		return true
	}
	w.DecideAll(in.Decisions, now, func(c *runs.Interrupt) bool { return c.Client })
	for _, d := range in.Decisions {
		w.NoteDelivered(d)
	}
	w.Abandon()
	return false
}

// onOpen says what becomes of an offer that leaves interrupts open; OnOpenAbandon if it leaves
// none.
func (t *thread) onOpen(in runs.Submit) runs.OpenPolicy {
	open, asks := t.open().Open(in.Decisions...)
	then := t.run.in.OnMissingResult
	if asks {
		then = t.run.in.OnNewInput
	}
	switch {
	case len(open) == 0, !asks && (then == "" || then == runs.OpenAbandon):
		return runs.OpenAbandon
	case in.OnBusy == runs.OnBusyEnqueue, in.OnBusy == "" && then == runs.OpenQueue:
		return runs.OpenQueue
	}
	return runs.OpenReject
}

// frees reports whether nothing has to be carried on after an offer: it answers or abandons all
// that the thread waits for, which are tool calls of the client without any result so far. Then the
// execution closes, and the run begins in a new one.
func (t *thread) frees(in runs.Submit) bool {
	carried := func(c runs.Interrupt) bool { return !c.Client || c.Decision != nil }
	return in.Offer != nil && t.successor == nil && len(t.queue) == 0 && t.onOpen(in) == runs.OpenAbandon && !slices.ContainsFunc(t.open().Calls, carried)
}

// refusal tells why an offer is refused that leaves interrupts open.
func (t *thread) refusal(in runs.Submit) error {
	open, asks := t.open().Open(in.Decisions...)
	active := runs.Active{RunID: t.run.in.Run.ID, Waiting: open}
	if asks || in.Offer == nil {
		return temporal.NewApplicationError("the thread waits for decisions", runs.ErrorInterrupted, active)
	}
	return temporal.NewApplicationError("the thread waits for results", runs.ErrorMissingResults, active)
}
