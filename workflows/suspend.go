package workflows

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// suspend waits, behind the end of an AG-UI run, until everything is decided that the run has ended
// with; then another run goes on. Whoever answers by an input of their own has that run; if the
// decisions come one by one, from wherever, or time runs out, nobody asked for the run that goes on.
func (r *run) suspend(ctx workflow.Context, patience time.Duration) error {
	w, late := r.interrupts.afterEnd, time.Time{}
	if patience > 0 {
		late = workflow.Now(ctx).Add(patience)
	}
	for r.resumed == nil && !w.settled() {
		if err := r.awaitDecision(ctx, earlier(w.next(), late)); err != nil {
			return err
		}
		now := workflow.Now(ctx)
		w.pass(now)
		elsewhere := patience > 0 && !now.Before(late) || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		if !elsewhere || r.resumed != nil || w.settled() {
			continue
		}
		r.notifier.stop(ctx)
		if r.hear(ctx); r.resumed == nil && !w.settled() { // nobody has answered meanwhile
			in := r.in
			in.Queue, in.Resume = r.queue, nil
			return continueWith(ctx, TypeParked, Parked{Run: in, Waits: w})
		}
	}
	if r.closing {
		r.notifier.drain(ctx)
		r.tellFire(ctx, Ended{})
		return nil
	}
	r.notifier.stop(ctx)
	next := r.resumed
	if next == nil {
		next = r.goOn(ctx)
	}
	if next.Fire != r.in.Fire { // it goes on for another one
		r.tellFire(ctx, Ended{})
	}
	next.Resume, next.Queue = w, r.queue
	return continueWith(ctx, TypeRun, *next)
}

// awaitDecision waits until all is decided, or some time; zero = for ever.
func (r *run) awaitDecision(ctx workflow.Context, until time.Time) error {
	ready := func() bool {
		return r.resumed != nil || r.interrupts.afterEnd.settled() || full(ctx) && r.in.Program == ""
	}
	if until.IsZero() {
		return workflow.Await(ctx, ready)
	}
	_, err := workflow.AwaitWithTimeout(ctx, until.Sub(workflow.Now(ctx)), ready)
	return err
}

// earlier of two times, of which a zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// goOn is a run that nobody asked for. Its id derives from this execution: it is a new one each time.
func (r *run) goOn(ctx workflow.Context) *RunInput {
	sum := sha256.Sum256([]byte(r.in.Run.ID + "\n" + workflow.GetInfo(ctx).OriginalRunID))
	next := r.in
	if h := next.Handed; h != nil { // what the agents before it have left it was that run's
		next.Limits = h.To.Limits
	}
	next.Run.ID = "run_" + hex.EncodeToString(sum[:13])
	next.Input, next.Digest, next.Token, next.Continues, next.Resume, next.Cancelled = 0, "", next.Run.ID, r.in.Run.ID, nil, r.tooLate
	return &next
}

// judgeAnswer refuses an offer that leaves a question open: nobody gives questions up by not answering
// them. Calls of the client's own it may leave. It tells whether the thread resumes with the offer, as
// opposed to keeping it for later.
func (r *run) judgeAnswer(in Submit) (resumes bool, err error) {
	then := r.onOpen(in)
	switch {
	case r.closing || r.frees(in):
		return true, nil
	case r.resumed == nil && r.interrupts.afterEnd.settled() && r.interrupts.afterEnd.contradicts(in.Decisions):
		return false, temporal.NewApplicationError("others have decided, and the thread goes on", ErrorBusy, Active{RunID: r.in.Run.ID})
	case r.resumed != nil && in.OnBusy != OnBusyEnqueue:
		return false, temporal.NewApplicationError("another run is active", ErrorBusy, Active{RunID: r.resumed.Run.ID})
	case in.Offer == nil || then == OnOpenReject:
		return false, r.refusal(in)
	case then == OnOpenQueue || r.resumed != nil:
		return false, nil
	}
	open, _ := r.interrupts.afterEnd.open()
	next := r.in.Handed.asked(*in.Offer)
	next.Resume, next.Queue, next.Fire = r.interrupts.afterEnd, r.queue, cmp.Or(in.Offer.Fire, r.in.Fire)
	body, err := encode(next)
	if err != nil || len(body)+(len(open)+len(in.Decisions))*maxDecision+r.interrupts.afterEnd.maxNews() > MaxPayload {
		return false, temporal.NewApplicationError("the run's id leaves too little room for those that wait", ErrorQueueFull)
	}
	return true, nil
}

// answer takes an offer that judgeAnswer has let pass. What it decides about is decided, also where more
// people have to approve: then the questions stay open, and the thread does not resume with the offer.
func (r *run) answer(ctx workflow.Context, in Submit) Submitted {
	if r.closing = r.closing || r.frees(in); r.closing {
		r.take(ctx, in)
		return Submitted{Closing: true}
	}
	if r.resumed != nil || r.onOpen(in) == OnOpenQueue {
		r.queue = append(r.queue, *in.Offer)
		return Submitted{Queued: true}
	}
	if open := r.take(ctx, in); open {
		if in.OnBusy != OnBusyEnqueue {
			return Submitted{Open: true}
		}
		r.queue = append(r.queue, *in.Offer)
		return Submitted{Queued: true}
	}
	next := r.in.Handed.asked(*in.Offer)
	r.resumed = &next
	r.resumed.Fire = cmp.Or(in.Offer.Fire, r.in.Fire)
	return Submitted{Queued: true}
}

// take takes what an offer answers, and gives up what it leaves of the client's. What was decided before stands.
// open tells that more people have to approve: then nothing else is taken.
func (r *run) take(ctx workflow.Context, in Submit) (open bool) {
	now := workflow.Now(ctx)
	r.interrupts.afterEnd.decideAll(in.Decisions, now, (*Waiting).asksPeople)
	r.interrupts.afterEnd.pass(now)
	if _, asks := r.interrupts.afterEnd.open(); asks {
		return true
	}
	r.interrupts.afterEnd.decideAll(in.Decisions, now, func(c *Waiting) bool { return c.Client })
	for _, d := range in.Decisions {
		r.interrupts.afterEnd.bring(d)
	}
	r.interrupts.afterEnd.abandon()
	return false
}

// contradicts tells whether something else stands than one of these decisions. Who comes so late is shown what goes on
// without them, and told what stands.
func (w *Waits) contradicts(decisions []Decision) bool {
	return slices.ContainsFunc(decisions, func(d Decision) bool {
		c := w.find(d.CallID)
		return c != nil && c.Decision != nil && !c.Decision.isRepeatedBy(d)
	})
}

// decideAll takes decisions about some of the calls.
func (w *Waits) decideAll(decisions []Decision, now time.Time, about func(*Waiting) bool) {
	for _, d := range decisions {
		if c := w.find(d.CallID); c != nil && about(c) {
			w.decide(d, now)
		}
	}
}

// decide takes decisions one by one. A run that goes on with decided calls still tells what was decided.
//
// What was decided about is told by the log, and Temporal may hear of it later: a worker dies, or a task is done
// once more since something came while it was. Then the update is in the same task as what lets the run come to
// its question, or to its end, and handlers run first. So this one lets the run catch up: a question that is still
// to be asked is waited for, for a second, and what was cancelled takes no answer.
func (r *run) decide(ctx workflow.Context, in Decide) (Decided, error) {
	r.catchUp(ctx)
	if unknown := func() bool { return !r.ended && !r.asked(in) }; unknown() {
		_, _ = workflow.AwaitWithTimeout(ctx, decidePatience, func() bool { return !unknown() }) // cancelled: it ends
	}
	var out Decided
	for _, d := range in.Decisions {
		out.Results = append(out.Results, r.interruptsOf(d.CallID).decide(d, workflow.Now(ctx)))
	}
	for i, d := range in.Decisions {
		w := r.interruptsOf(d.CallID)
		out.Results[i].Settled = out.Results[i].Error == "" && w.find(d.CallID) != nil && w.settled()
	}
	return out, nil
}

// catchUp has whatever else the task has brought come first: a coroutine that is begun now has its turn behind
// the others.
func (r *run) catchUp(ctx workflow.Context) {
	caughtUp := false
	workflow.Go(ctx, func(workflow.Context) { caughtUp = true })
	_ = workflow.Await(ctx, func() bool { return caughtUp && !r.moving }) // a handler's context does not end
}

// decidePatience is how long a decision may be early.
const decidePatience = time.Second

// asked tells whether somebody was asked about one of these calls.
func (r *run) asked(in Decide) bool {
	return slices.ContainsFunc(in.Decisions, func(d Decision) bool { return r.interruptsOf(d.CallID).find(d.CallID) != nil })
}

// resume does what was decided about the calls of the run before. over tells that the run ends with it.
func (r *run) resume(ctx workflow.Context) (end ending, over bool) {
	w := r.in.Resume
	if w == nil || r.log.begun() {
		return ending{}, false
	}
	if w.fails() {
		return ending{outcome: OutcomeError, code: CodeApprovalExpired, message: "nobody decided in time"}, true
	}
	if len(w.calls()) == 0 && w.Handoff == nil {
		return ending{}, false
	}
	turn := r.turn
	if r.in.Hold && r.branch == nil { // what these calls ask is asked in no turn of this run
		r.turn = 0
	}
	if end, over = r.act(ctx, w, r.step(0, stepTools, stepTools)); r.interrupts.held == nil {
		r.turn = turn
	}
	return end, over
}

// act does what was decided about calls. over tells that the run ends with it.
func (r *run) act(ctx workflow.Context, w *Waits, step Step) (end ending, over bool) {
	if w.Excess != nil {
		return r.goBeyond(ctx, w, step)
	}
	waits := r.waitsOf(ctx, ModelAnswer{MessageID: w.MessageID})
	waits.Round, waits.Handoff = w.Round+1, w.decidedHandoff()
	calls := toolTurn{messageID: w.MessageID, calls: w.calls(), step: step}
	if end, over = r.callTools(ctx, calls, waits); over {
		return end, true
	}
	if end, over = r.callHandoff(ctx, calls, waits); over {
		return end, true
	}
	switch {
	case w.outOfTime(r.leaf()):
		return ending{outcome: OutcomeError, code: timeout.Code, message: timeout.Message}, true
	case len(waits.Calls) == 0:
		return ending{}, false
	case r.interrupts.held != nil:
		return r.tellHeld(ctx)
	}
	return ending{outcome: waits.outcome(), waits: waits}, true
}
