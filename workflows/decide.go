package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// decide handles the update "decide". It judges each decision for itself, and returns a result for
// each, in order. An unknown, repeated or late decision is a result, not an error.
//
// The log announces an interrupt before the workflow task that records the announcement is
// completed. So a decision may arrive in the same task, and update handlers run first. The handler
// therefore lets the run catch up, and waits up to decideTimeout for an interrupt that is not
// known yet. It blocks while the thread takes no decisions, because its children are ending.
func (t *thread) decide(ctx workflow.Context, in runs.DecideRequest) (runs.DecideResult, error) {
	t.catchUp(ctx)
	if unknown := func() bool { return !t.phase.isEnding() && !t.hasInterrupt(in) }; unknown() {
		_, _ = workflow.AwaitWithTimeout(ctx, decideTimeout, func() bool { return !unknown() }) // an error means that no interrupt came in time
	}
	t.noteUpdate(ctx)
	var out runs.DecideResult
	for _, d := range in.Decisions {
		out.Results = append(out.Results, t.run.interruptsOf(d.CallID).Decide(d, workflow.Now(ctx)))
	}
	// Only now: decisions of the same update may resolve the interrupts together.
	for i, d := range in.Decisions {
		set := t.run.interruptsOf(d.CallID)
		out.Results[i].Resolved = out.Results[i].Error == "" && set.Find(d.CallID) != nil && set.IsResolved()
	}
	return out, nil
}

// catchUp lets all other coroutines run first, and blocks while the thread takes no decisions. A
// coroutine that is started now runs after those that exist.
func (t *thread) catchUp(ctx workflow.Context) {
	caughtUp := false
	workflow.Go(ctx, func(workflow.Context) { caughtUp = true })
	_ = workflow.Await(ctx, func() bool { return caughtUp && t.phase.takesDecisions() }) // a handler's context does not end
}

// decideTimeout is how long a decision may arrive before the workflow knows its interrupt.
const decideTimeout = time.Second

// hasInterrupt reports whether one of the decisions is about an interrupt that the thread knows.
func (t *thread) hasInterrupt(in runs.DecideRequest) bool {
	return slices.ContainsFunc(in.Decisions, func(d runs.Decision) bool { return t.run.interruptsOf(d.CallID).Find(d.CallID) != nil })
}
