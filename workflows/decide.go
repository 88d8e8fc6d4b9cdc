package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// decide handles the update "decide". Each decision is judged for itself; a run that continues with
// decided calls still tells what was decided.
//
// The log announces an interrupt before the workflow task that records the announcement is
// completed. A decision may thus arrive in the same task, and update handlers run first. So the
// handler lets the run catch up: it waits up to a second for an interrupt that is not known yet.
func (t *thread) decide(ctx workflow.Context, in runs.Decide) (runs.Decided, error) {
	t.catchUp(ctx)
	if unknown := func() bool { return !t.phase.isOver() && !t.hasInterrupt(in) }; unknown() {
		_, _ = workflow.AwaitWithTimeout(ctx, decidePatience, func() bool { return !unknown() }) // cancelled: it ends
	}
	var out runs.Decided
	for _, d := range in.Decisions {
		out.Results = append(out.Results, t.run.interruptsOf(d.CallID).Decide(d, workflow.Now(ctx)))
	}
	for i, d := range in.Decisions {
		w := t.run.interruptsOf(d.CallID)
		out.Results[i].Settled = out.Results[i].Error == "" && w.Find(d.CallID) != nil && w.IsResolved()
	}
	return out, nil
}

// catchUp lets all other coroutines run first: one that is started now runs after them.
func (t *thread) catchUp(ctx workflow.Context) {
	caughtUp := false
	workflow.Go(ctx, func(workflow.Context) { caughtUp = true })
	_ = workflow.Await(ctx, func() bool { return caughtUp && t.phase.takesDecisions() }) // a handler's context does not end
}

// decidePatience is how long a decision may be ahead of its interrupt.
const decidePatience = time.Second

// hasInterrupt reports whether one of the calls is an interrupt of the thread.
func (t *thread) hasInterrupt(in runs.Decide) bool {
	return slices.ContainsFunc(in.Decisions, func(d runs.Decision) bool { return t.run.interruptsOf(d.CallID).Find(d.CallID) != nil })
}
