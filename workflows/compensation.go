package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// compensationTime is how long a run may take to compensate. When compensation begins, the run's
// deadline moves to leave that time.
const compensationTime = 10 * time.Minute

// compensate makes the pipeline undo its finished steps before the run ends with end: it sets the
// event for the next advance, and the pending end. over reports that there is nothing to undo, and
// the run ends at once.
//
// A child and a program's step are never over at once, because the advance closes their steps in
// the log. A second call, while the run compensates, means that the time for compensation has
// passed.
func (p interpreter) compensate(ctx workflow.Context, end ending) (_ ending, over bool) {
	pos := p.position
	goesOn := p.run.in.Program != "" // the program may continue after the step
	if p.run.child == nil && !goesOn && pos.End == nil && len(pos.Cursor.Undo) == 0 && (pos.Branches == nil || !pos.Branches.Compensates) && !p.mayHaveEnded() {
		return end, true
	}
	failure := end.failure()
	if end.outcome == runs.OutcomeCancelled {
		failure.Code = string(runs.OutcomeCancelled)
	} else if p.run.overdue(ctx) && p.run.child != nil && p.run.child.BranchPath != "" {
		failure = timeout
	} else if p.run.overdue(ctx) {
		out := p.run.durationEnding()
		failure = pipeline.Failure{Code: out.code, Message: out.message}
	}
	pos.Event = &pipeline.Event{Kind: pipeline.EventCancelled, Failure: &failure}
	if pos.End != nil || pos.Cursor.Undoing != nil { // no time is left: each further advance skips one compensation
		return ending{}, false
	}
	pos.End = &runs.PendingEnd{Outcome: end.outcome, Failure: failure}
	if until := workflow.Now(ctx).Add(compensationTime); !goesOn || p.run.budget.Deadline.Before(until) {
		p.run.budget.Deadline = until
	}
	return ending{}, false
}
