package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
)

// undoing is how long a run may take to compensate for what it has done.
const undoing = 10 * time.Minute

// unwind lets the walk compensate for what was done, since the run is to end. over tells that there is nothing.
func (r *run) unwind(ctx workflow.Context, end ending) (_ ending, over bool) {
	w := r.walk
	goesOn := r.in.Program != "" // the program may: its steps are to be closed
	if r.branch == nil && !goesOn && w.Then == nil && len(w.Cursor.Undo) == 0 && (w.Fan == nil || !w.Fan.Compensates) && !r.lost() {
		return end, true
	}
	failure := end.why()
	if end.outcome == OutcomeCancelled {
		failure.Code = string(OutcomeCancelled)
	} else if r.overdue(ctx) && r.branch != nil && r.branch.Fork != "" {
		failure = timeout
	} else if r.overdue(ctx) {
		out := r.outOfTime()
		failure = pipeline.Failure{Code: out.code, Message: out.message}
	}
	w.Event = &pipeline.Event{Kind: pipeline.EventCancelled, Failure: &failure}
	if w.Then != nil || w.Cursor.Undoing != nil { // there is no time left: the walk comes to its end without doing more
		return ending{}, false
	}
	w.Then = &Then{Outcome: end.outcome, Failure: failure}
	if until := workflow.Now(ctx).Add(undoing); !goesOn || r.budget.Deadline.Before(until) {
		r.budget.Deadline = until
	}
	return ending{}, false
}
