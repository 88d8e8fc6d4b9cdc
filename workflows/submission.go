package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// The update "submit" offers a run to the workflow of its thread. Its handler depends on where the
// thread is:
//
//	active run                  queue the offer, interrupt the run, or refuse (ErrorBusy)
//	waiting for interrupts      continue with an offer that answers them; otherwise queue or refuse
//	nothing to carry on         Closing: the API starts the run in a new execution
//
// No other coroutine runs between the validator and the handler. So the handler repeats the
// validator's conditions, and does not fail.

// validateSubmit refuses an offer that the thread does not take, with an application error of a
// type runs.Error…. A refused update leaves no event in the history. A repeated offer (same run ID
// and digest) passes.
func (t *thread) validateSubmit(in runs.SubmitRequest) error {
	if same, known := t.findOffer(in); known {
		if !same {
			return temporal.NewApplicationError("the run has another input", runs.ErrorRunIDReused)
		}
		return nil
	}
	if t.interruptsAfterEnd() != nil {
		if resumes, err := t.validateAnswer(in); resumes || err != nil {
			return err
		}
	} else if in.Offer == nil || !t.phase.isEnding() && in.OnBusy != runs.OnBusyEnqueue && in.OnBusy != runs.OnBusyInterrupt {
		active := runs.ActiveRun{RunID: t.run.in.Run.ID, Waiting: t.run.interrupts.open(in.Decisions)}
		return temporal.NewApplicationError("another run is active", runs.ErrorBusy, active)
	}
	queue := append(slices.Clip(t.queue), *in.Offer)
	if body, err := runs.Encode(queue); err != nil || len(body) > runs.MaxQueue || !t.fits(queue, t.run.control.steering) {
		return temporal.NewApplicationError("the queue of this thread is full", runs.ErrorQueueFull)
	}
	return nil
}

// findOffer looks for the offer's run ID in the active run, the successor and the queue. known
// reports that it is there, same that it has the same input.
func (t *thread) findOffer(in runs.SubmitRequest) (same, known bool) {
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

// submit takes an offer that validateSubmit has let pass. It does not block. A run that is ending
// is not cancelled for onBusy: interrupt; the offer then only runs next.
func (t *thread) submit(ctx workflow.Context, in runs.SubmitRequest) (runs.SubmitResult, error) {
	if _, known := t.findOffer(in); known {
		active := in.RunID == t.run.in.Run.ID
		return runs.SubmitResult{Attached: active, Queued: !active}, nil
	}
	t.noteUpdate(ctx)
	if t.interruptsAfterEnd() != nil {
		return t.acceptAnswer(ctx, in), nil
	}
	if in.OnBusy != runs.OnBusyInterrupt {
		return t.enqueue(in), nil
	}
	t.queue = append([]runs.Input{*in.Offer}, t.queue...)
	if t.phase.isEnding() {
		return runs.SubmitResult{Queued: true}, nil
	}
	t.cancel()
	return runs.SubmitResult{Queued: true, Interrupted: t.run.in.Run.ID}, nil
}

// enqueue appends the offer to the queue.
func (t *thread) enqueue(in runs.SubmitRequest) runs.SubmitResult {
	t.queue = append(t.queue, *in.Offer)
	return runs.SubmitResult{Queued: true}
}

// validateAnswer refuses an offer to a thread that waits for interrupts, if it leaves an approval
// or question open: a new input does not give these up. It may leave client tool calls open, if the
// agent's policy abandons them. resumes reports whether the thread continues with the offer;
// otherwise the offer is queued.
func (t *thread) validateAnswer(in runs.SubmitRequest) (resumes bool, err error) {
	set, policy := t.interruptsAfterEnd(), t.openInterruptPolicy(in)
	switch {
	case t.closing || t.leavesNothingToCarry(in):
		return true, nil
	case t.successor == nil && set.IsResolved() && set.Contradicts(in.Decisions):
		return false, temporal.NewApplicationError("another decision has resolved the interrupts, and the thread continues", runs.ErrorBusy, runs.ActiveRun{RunID: t.run.in.Run.ID})
	case t.successor != nil && in.OnBusy != runs.OnBusyEnqueue:
		return false, temporal.NewApplicationError("another run is active", runs.ErrorBusy, runs.ActiveRun{RunID: t.successor.Run.ID})
	case in.Offer == nil || policy == runs.OpenReject:
		return false, t.refusal(in)
	case policy == runs.OpenQueue || t.successor != nil:
		return false, nil
	}
	// A vote that cannot be counted refuses the input before any of its decisions counts.
	if vote := set.ConflictingVote(in.Decisions); vote != nil {
		return false, temporal.NewApplicationError("another approver has voted for an edit with other arguments", runs.ErrorOtherEdit, *vote)
	}
	next := t.run.in.HandedOver.Redirect(*in.Offer)
	next.Resume, next.Queue, next.FiringID = set, t.queue, cmp.Or(in.Offer.FiringID, t.run.in.FiringID)
	body, err := runs.Encode(next)
	if err != nil || !set.FitsAnswered(len(body), len(in.Decisions)) {
		return false, temporal.NewApplicationError("the run ID is too long for the queue of this thread", runs.ErrorQueueFull)
	}
	return true, nil
}

// acceptAnswer takes an offer that validateAnswer has let pass, with its decisions. If a quorum
// needs more approvals after them, the interrupts stay open, and the offer is queued (onBusy:
// enqueue) or not kept (Open).
func (t *thread) acceptAnswer(ctx workflow.Context, in runs.SubmitRequest) runs.SubmitResult {
	if t.closing = t.closing || t.leavesNothingToCarry(in); t.closing {
		t.takeAnswers(ctx, in)
		return runs.SubmitResult{Closing: true}
	}
	if t.successor != nil || t.openInterruptPolicy(in) == runs.OpenQueue {
		return t.enqueue(in)
	}
	if open := t.takeAnswers(ctx, in); open {
		if in.OnBusy != runs.OnBusyEnqueue {
			return runs.SubmitResult{Open: true}
		}
		return t.enqueue(in)
	}
	next := t.run.in.HandedOver.Redirect(*in.Offer)
	t.successor = &next
	t.successor.FiringID = cmp.Or(in.Offer.FiringID, t.run.in.FiringID)
	return runs.SubmitResult{Queued: true}
}

// takeAnswers takes the decisions and results of an offer, and abandons the client tool calls that
// it leaves open. Earlier decisions stand. open reports that approvals or questions are still open,
// for instance because a quorum needs more votes: then no result was taken.
func (t *thread) takeAnswers(ctx workflow.Context, in runs.SubmitRequest) (open bool) {
	set, now := t.interruptsAfterEnd(), workflow.Now(ctx)
	set.DecideAll(in.Decisions, now, (*runs.Interrupt).AsksPeople)
	set.ApplyTime(now)
	if _, asksPeople := set.Open(); asksPeople {
		return true
	}
	set.DecideAll(in.Decisions, now, func(i *runs.Interrupt) bool { return i.Client })
	for _, d := range in.Decisions {
		set.NoteDelivered(d)
	}
	set.Abandon()
	return false
}

// openInterruptPolicy returns what happens to an offer that leaves interrupts open: OpenQueue,
// OpenReject, or OpenAbandon. OpenAbandon also means that it leaves none open. The offer's onBusy
// comes before the agent's policy.
func (t *thread) openInterruptPolicy(in runs.SubmitRequest) runs.OpenPolicy {
	open, asksPeople := t.interruptsAfterEnd().Open(in.Decisions...)
	policy := t.run.in.OnMissingResult
	if asksPeople {
		policy = t.run.in.OnNewInput
	}
	switch {
	case len(open) == 0, !asksPeople && (policy == "" || policy == runs.OpenAbandon):
		return runs.OpenAbandon
	case in.OnBusy == runs.OnBusyEnqueue, in.OnBusy == "" && policy == runs.OpenQueue:
		return runs.OpenQueue
	}
	return runs.OpenReject
}

// leavesNothingToCarry reports whether an offer leaves nothing to carry on: it answers or abandons
// all interrupts, which are client tool calls without any result so far whose results do not change
// the state, and no run is queued. Then the execution closes, and the API starts the run in a new
// one.
func (t *thread) leavesNothingToCarry(in runs.SubmitRequest) bool {
	carried := func(item runs.Interrupt) bool { return !item.Client || item.Decision != nil || item.ChangesState }
	return in.Offer != nil && t.successor == nil && len(t.queue) == 0 && t.openInterruptPolicy(in) == runs.OpenAbandon && !slices.ContainsFunc(t.interruptsAfterEnd().Items, carried)
}

// refusal returns the error for an offer that leaves interrupts open, with the open calls as its
// detail.
func (t *thread) refusal(in runs.SubmitRequest) error {
	open, asksPeople := t.interruptsAfterEnd().Open(in.Decisions...)
	active := runs.ActiveRun{RunID: t.run.in.Run.ID, Waiting: open}
	if asksPeople || in.Offer == nil {
		return temporal.NewApplicationError("the thread waits for decisions", runs.ErrorInterrupted, active)
	}
	return temporal.NewApplicationError("the thread waits for results", runs.ErrorMissingResults, active)
}
