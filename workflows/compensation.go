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

// hasNothingToUndo reports whether the run has not begun to compensate, and no finished step has a
// compensation.
func (p pipelineExecutor) hasNothingToUndo() bool {
	pos := p.position
	branchesUndo := pos.Branches != nil && pos.Branches.Compensates
	return pos.End == nil && len(pos.TreePosition.Undo) == 0 && !branchesUndo
}

// compensate makes the pipeline undo its finished steps before the run ends with end: it sets the
// event for the next advance, and the pending end, and returns a zero ending. If there is nothing
// to undo it returns end: the run ends at once.
//
// A child and a program's step never end at once, because the advance closes their steps in the
// log. A second call, while the run compensates, means that the time for compensation has passed.
func (p pipelineExecutor) compensate(ctx workflow.Context, end ending) ending {
	pos := p.position
	programContinues := p.run.in.Program != "" // it may execute further steps
	if p.run.child == nil && !programContinues && p.hasNothingToUndo() {
		return end
	}
	failure := end.failure()
	if end.outcome == runs.OutcomeCancelled {
		failure.Code = string(runs.OutcomeCancelled)
	} else if p.run.isOverdue(ctx) && p.run.child != nil && p.run.child.BranchPath != "" {
		failure = timeout
	} else if p.run.isOverdue(ctx) {
		out := p.run.durationEnding()
		failure = pipeline.Failure{Code: out.code, Message: out.message}
	}
	pos.Event = &pipeline.Event{Kind: pipeline.EventCancelled, Failure: &failure}
	if pos.End != nil || pos.TreePosition.Undoing != nil { // no time is left: each further advance skips one compensation
		return ending{}
	}
	pos.End = &runs.PendingEnd{Outcome: end.outcome, Failure: failure}
	if until := workflow.Now(ctx).Add(compensationTime); !programContinues || p.run.budget.Deadline.Before(until) {
		p.run.budget.Deadline = until
	}
	return ending{}
}
