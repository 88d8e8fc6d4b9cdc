package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// decide takes decisions one by one. A run that goes on with decided calls still tells what was decided.
//
// What was decided about is told by the log, and Temporal may hear of it later: a worker dies, or a task is done
// once more since something came while it was. Then the update is in the same task as what lets the run come to
// its question, or to its end, and handlers run first. So this one lets the run catch up: a question that is still
// to be asked is waited for, for a second, and what was cancelled takes no answer.
func (t *thread) decide(ctx workflow.Context, in runs.Decide) (runs.Decided, error) {
	t.catchUp(ctx)
	if unknown := func() bool { return !t.phase.isOver() && !t.asked(in) }; unknown() {
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
func (t *thread) asked(in runs.Decide) bool {
	return slices.ContainsFunc(in.Decisions, func(d runs.Decision) bool { return t.run.interruptsOf(d.CallID).Find(d.CallID) != nil })
}
