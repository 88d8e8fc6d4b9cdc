package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// compensationTime is how long a run may take to undo what it has done.
const compensationTime = 10 * time.Minute

// compensate lets the pipeline undo what was done, before the run ends. over tells that there is
// nothing to undo.
func (p interpreter) compensate(ctx workflow.Context, end ending) (_ ending, over bool) {
	w := p.position
	goesOn := p.run.in.Program != "" // the program may: its steps are to be closed
	if p.run.child == nil && !goesOn && w.End == nil && len(w.Cursor.Undo) == 0 && (w.Branches == nil || !w.Branches.Compensates) && !p.mayHaveEnded() {
		return end, true
	}
	failure := end.why()
	if end.outcome == runs.OutcomeCancelled {
		failure.Code = string(runs.OutcomeCancelled)
	} else if p.run.overdue(ctx) && p.run.child != nil && p.run.child.BranchPath != "" {
		failure = timeout
	} else if p.run.overdue(ctx) {
		out := p.run.durationEnding()
		failure = pipeline.Failure{Code: out.code, Message: out.message}
	}
	w.Event = &pipeline.Event{Kind: pipeline.EventCancelled, Failure: &failure}
	if w.End != nil || w.Cursor.Undoing != nil { // there is no time left: the walk comes to its end without doing more
		return ending{}, false
	}
	w.End = &runs.PendingEnd{Outcome: end.outcome, Failure: failure}
	if until := workflow.Now(ctx).Add(compensationTime); !goesOn || p.run.budget.Deadline.Before(until) {
		p.run.budget.Deadline = until
	}
	return ending{}, false
}
