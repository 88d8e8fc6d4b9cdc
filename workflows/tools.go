package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// toolTurn runs the tool calls of one turn that can be made, each on the lowest lane that is free: as
// many at a time as there are lanes, the others in their order as lanes become free. All that have begun
// end before the turn does; none begins behind a failure or a cancel.
type toolTurn struct {
	run       *run
	ctx       workflow.Context
	messageID string
	step      Step
	calls     []call // those that have not begun
	ended     workflow.Selector
	share     int // of the subagents that there may be, for each call that hands work to one

	underWay  int
	cancelled bool
	suspended []ToolAnswer // of subagents that wait
	err       error
}

// call is one to be made.
type call struct {
	index    int // its place in the message
	id, tool string
	decision *Decision
	onExpiry OnExpiry
	delegate *Delegate // the agent that it hands work to
	// resumes is the subagent that goes on to work for it, waits what it has waited for.
	resumes  *Suspended
	waits    *Waits
	votes    []Vote
	remember string
}

// calls are those of an answer that wait for nothing.
func (a ModelAnswer) calls() []call {
	var calls []call
	for i := range a.count() {
		switch {
		case i >= len(a.Calls):
			calls = append(calls, call{index: i})
		case !a.Calls[i].waits():
			calls = append(calls, call{index: i, id: a.Calls[i].ID, tool: a.Calls[i].Tool, delegate: a.Calls[i].to(a.Delegates)})
		}
	}
	return calls
}

// to is the agent that the call hands work to; nil = it is a tool's.
func (c Call) to(delegates []Delegate) *Delegate {
	if c.Delegate < 1 || c.Delegate > len(delegates) {
		return nil
	}
	return &delegates[c.Delegate-1]
}

// callTools makes the calls of a turn. over tells that the run ends with that; if it does not, waits has what
// subagents are waiting for.
func (r *run) callTools(ctx workflow.Context, t toolTurn, waits *Waits) (end ending, over bool) {
	var ok bool
	if t.share, ok = r.shareSubagents(t.calls); !ok {
		return limit(CodeLimitSubagents, "the run reached its limit of %d subagents", MaxSubagents), true
	}
	t.run, t.ctx, t.ended = r, ctx, workflow.NewSelector(ctx)
	atOnce := min(len(t.calls), MaxLanes)
	for len(r.lanes) < atOnce {
		r.lanes = append(r.lanes, 0)
	}
	for lane := range atOnce {
		t.begin(lane)
	}
	for t.underWay > 0 {
		t.ended.Select(ctx)
	}
	if t.err != nil && r.open != t.step.Name {
		r.broke(t.step, nil)
	}
	for _, s := range t.suspended {
		waits.adopt(*s.Suspended, s.Waits)
	}
	switch {
	case t.err != nil:
		return r.failure(ctx, t.err), true
	case t.cancelled || ctx.Err() != nil && !r.doneAnyway(len(t.calls)):
		return ending{outcome: OutcomeCancelled}, true
	case len(t.suspended) > 0 && !waits.fits(r.in):
		return limit(CodeLimitParallelTools, "the run waits for more people than it can"), true
	}
	return ending{}, false
}

// begin starts the next call on a lane.
func (t *toolTurn) begin(lane int) {
	c := t.calls[0]
	in := ToolCall{Step: t.step, Open: t.step.ID, Lane: lane, LaneAfter: t.run.lanes[lane], CallID: c.id, MessageID: t.messageID, Decision: c.decision, OnExpiry: c.onExpiry}
	in.Votes, in.Remember = c.votes, c.remember
	in.ID = fmt.Sprintf("%s/%d", t.step.ID, c.index)
	summary := "tool"
	if c.id == "" {
		in.Index = c.index
	} else {
		summary = "tool: " + c.tool
	}
	if t.step.After == 0 {
		in.Opens, in.Announces = t.run.opens()
	}
	t.calls, t.underWay = t.calls[1:], t.underWay+1
	if c.delegates() {
		t.run.subagents++
		t.ended.AddFuture(t.run.delegate(t.ctx, c, in, t.share), func(f workflow.Future) { t.end(lane, true, f) })
		return
	}
	ctx := workflow.WithActivityOptions(t.ctx, t.run.options(t.ctx, summary))
	t.ended.AddFuture(workflow.ExecuteActivity(ctx, ActivityCallTool, in), func(f workflow.Future) { t.end(lane, false, f) })
}

// end takes in how the call on a lane ended, and gives the lane to the next.
func (t *toolTurn) end(lane int, delegated bool, f workflow.Future) {
	t.underWay--
	var done ToolAnswer
	if err := f.Get(t.ctx, &done); err != nil {
		t.err = errors.Join(t.err, err)
		t.run.cut = append(t.run.cut, Lane{Index: lane, After: t.run.lanes[lane], Subagents: delegated})
		return
	}
	t.run.lanes[lane] = done.Seq
	t.run.main, t.run.open = max(t.run.main, done.Opened), t.run.called(stepTools)
	t.run.subagents += done.Subagents
	for _, u := range done.Usage {
		t.run.usage = addUsage(t.run.usage, u)
	}
	if done.Suspended != nil {
		t.suspended = append(t.suspended, done)
	}
	t.cancelled = t.cancelled || done.Outcome == OutcomeCancelled
	if len(t.calls) > 0 && t.err == nil && !t.cancelled && t.ctx.Err() == nil {
		t.begin(lane)
	}
}
