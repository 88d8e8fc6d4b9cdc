package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
)

// contradicts tells whether something else stands than one of these decisions. Who comes so late is shown what goes on
// without them, and told what stands.
func (w *Interrupts) contradicts(decisions []Decision) bool {
	return slices.ContainsFunc(decisions, func(d Decision) bool {
		c := w.find(d.CallID)
		return c != nil && c.Decision != nil && !c.Decision.isRepeatedBy(d)
	})
}

// decideAll takes decisions about some of the calls.
func (w *Interrupts) decideAll(decisions []Decision, now time.Time, about func(*Interrupt) bool) {
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
func (t *thread) decide(ctx workflow.Context, in Decide) (Decided, error) {
	t.catchUp(ctx)
	if unknown := func() bool { return !t.phase.isOver() && !t.asked(in) }; unknown() {
		_, _ = workflow.AwaitWithTimeout(ctx, decidePatience, func() bool { return !unknown() }) // cancelled: it ends
	}
	var out Decided
	for _, d := range in.Decisions {
		out.Results = append(out.Results, t.run.interruptsOf(d.CallID).decide(d, workflow.Now(ctx)))
	}
	for i, d := range in.Decisions {
		w := t.run.interruptsOf(d.CallID)
		out.Results[i].Settled = out.Results[i].Error == "" && w.find(d.CallID) != nil && w.isResolved()
	}
	return out, nil
}

// catchUp has whatever else the task has brought come first: a coroutine that is begun now has its turn behind
// the others.
func (t *thread) catchUp(ctx workflow.Context) {
	caughtUp := false
	workflow.Go(ctx, func(workflow.Context) { caughtUp = true })
	_ = workflow.Await(ctx, func() bool { return caughtUp && t.phase.takesDecisions() }) // a handler's context does not end
}

// decidePatience is how long a decision may be early.
const decidePatience = time.Second

// asked tells whether somebody was asked about one of these calls.
func (t *thread) asked(in Decide) bool {
	return slices.ContainsFunc(in.Decisions, func(d Decision) bool { return t.run.interruptsOf(d.CallID).find(d.CallID) != nil })
}
