package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A tool call of a pipeline is followed by an advance, and in most cases the workflow decides
// nothing in between. The activity that makes the call then makes the advance, too:
//
//	advance ──► call, advance ──► call, advance ──► end
//
// In the log these are two steps with a record each, like those of two activities. An attempt that
// finds the result of the call continues after it, and one that finds both returns both. If the
// activity does not make the advance, the workflow schedules it. So the chained advance saves time,
// and correctness does not depend on it.
//
// What the workflow checks between steps it checks after the advance: whether the run is paused,
// cancelled, at a limit, or is to continue as new. Clients have seen the next step begin by then,
// but it has not done anything.
//
// The workflow may not learn that a call has ended: its worker died, or the run was cancelled. It
// then reports the call as failed, to an advance with the same step ID. The activity finds the
// recorded advance, and returns that one.

// chainAdvance returns what the activity of a call needs to make the next advance; nil = the
// activity must not. It must not if approvers, other workers or other agents take part in the call,
// or if the run is paused or compensates: then the workflow decides between the call and the
// advance.
func (p pipelineExecutor) chainAdvance(ctx workflow.Context, c call) *runs.ChainedAdvance {
	active := p.run.activeStep()
	switch {
	case active == nil, active.CallID == "" || active.CallID != c.id:
		return nil
	case c.decision != nil, c.queue != "", c.subagent != nil, c.handoff != nil:
		return nil
	case p.run.control.paused, p.run.isCompensating():
		return nil
	}
	position := *p.position // a copy: the call and its event are still to come
	position.Active, position.Event, position.Answered = nil, nil, ""
	return &runs.ChainedAdvance{ID: p.nextStep().ID, Position: position, Now: workflow.Now(ctx), Day: p.run.dayAllowance()}
}

// takeChained continues with the advance that the activity of the call has made. Its record is the
// last one of the main lane.
func (p pipelineExecutor) takeChained(ctx workflow.Context) runs.AdvanceResult {
	next := *p.chained
	p.chained = nil
	p.run.log.NoteRecord(next.Seq, "")
	p.setPosition(ctx, next)
	return next
}

// mayHaveEnded reports whether the active call may have ended without the workflow knowing. The
// next advance finds that out, and whether the call needs compensation.
func (p pipelineExecutor) mayHaveEnded() bool {
	active := p.run.activeStep()
	return active != nil && active.CallID != "" && len(p.run.log.Unfinished) > 0
}
