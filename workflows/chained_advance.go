package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// Behind the call of a step comes an advance, as a rule, and the workflow decides nothing in between. So the activity
// that makes the call goes on with the advance:
//
//	advance ──► call, advance ──► call, advance ──► end
//
// In the log they stay two steps with a record each, the same as if they were two activities: an attempt that finds the
// result of the call goes on behind it, and one that finds both returns both. Where the activity does not go on, for
// whatever reason, its answer lacks the advance, and the workflow asks for it. So nothing depends on it but the time.
//
// What the workflow would have looked at in between it looks at behind the advance: whether the run is paused, cancelled, at
// a limit, or to continue as new. By then clients are told of the next step, but it has not begun to work.
//
// A call may have gone on without the workflow being told: its worker died, and its time is over, or the run is cancelled.
// Then the workflow tells an advance that the call has failed, as it always did; but it is the same step, so it finds what
// was written, and that is what counts.

// chainAdvance lets a call of a step go on by itself; nil = it does not. Others may have to decide about it, or it is made by
// workers that have nothing but tools; what compensates is left as it is.
func (p *interpreter) chainAdvance(ctx workflow.Context, c call) *runs.ChainedAdvance {
	l := p.run.activeStep()
	switch {
	case l == nil, l.CallID == "" || l.CallID != c.id:
		return nil
	case c.decision != nil, c.queue != "", c.delegate != nil, c.handsTo != nil:
		return nil
	case p.run.paused, p.run.isCompensating():
		return nil
	}
	walk := *p.position
	walk.Active, walk.Event, walk.Answered = nil, nil, ""
	return &runs.ChainedAdvance{ID: p.nextStep().ID, Position: walk, Now: workflow.Now(ctx), Day: p.run.dayAllowance()}
}

// takeChained takes up what comes next, where the call has found that out.
func (p *interpreter) takeChained(ctx workflow.Context) runs.Advanced {
	next := *p.chained
	p.chained, p.run.log.Main, p.run.log.OpenStep = nil, next.Seq, ""
	p.setPosition(ctx, next)
	return next
}

// mayHaveEnded tells whether a call may have come to its end, and have gone on, without this being heard of. What there is to
// compensate for is known to the next advance then.
func (p *interpreter) mayHaveEnded() bool {
	l := p.run.activeStep()
	return l != nil && l.CallID != "" && len(p.run.log.Unfinished) > 0
}
