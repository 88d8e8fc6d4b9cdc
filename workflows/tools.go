package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// toolTurn runs the tool calls of one turn that are ours, each on the lowest lane that is free: as many at a time as
// there are lanes, the others in their order as lanes become free. All that have begun end before the
// turn does; none begins behind a failure or a cancel.
type toolTurn struct {
	run    *run
	ctx    workflow.Context
	answer ModelAnswer
	step   Step
	ended  workflow.Selector

	calls     []int // those that have not begun, as places in the message
	underWay  int
	cancelled bool
	err       error
}

func (r *run) callTools(ctx workflow.Context, answer ModelAnswer) (cancelled bool, err error) {
	t := &toolTurn{run: r, ctx: ctx, answer: answer, step: r.step(r.turn, stepTools, stepTools), ended: workflow.NewSelector(ctx)}
	for i := range answer.count() {
		if i >= len(answer.Calls) || !answer.Calls[i].Client {
			t.calls = append(t.calls, i)
		}
	}
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
	return t.cancelled, t.err
}

// begin starts the next call on a lane.
func (t *toolTurn) begin(lane int) {
	i := t.calls[0]
	in := ToolCall{Step: t.step, Open: t.step.ID, Lane: lane, LaneAfter: t.run.lanes[lane], Index: i, MessageID: t.answer.MessageID}
	in.ID = fmt.Sprintf("%s/%d", t.step.ID, i)
	summary := "tool"
	if i < len(t.answer.Calls) {
		call := t.answer.Calls[i]
		in.CallID, in.Index, summary = call.ID, 0, "tool: "+call.Tool
	}
	t.calls, t.underWay = t.calls[1:], t.underWay+1
	ctx := workflow.WithActivityOptions(t.ctx, t.run.options(t.ctx, summary))
	t.ended.AddFuture(workflow.ExecuteActivity(ctx, ActivityCallTool, in), func(f workflow.Future) { t.end(lane, f) })
}

// end takes in how the call on a lane ended, and gives the lane to the next.
func (t *toolTurn) end(lane int, f workflow.Future) {
	t.underWay--
	var done ToolAnswer
	if err := f.Get(t.ctx, &done); err != nil {
		t.err = errors.Join(t.err, err)
		t.run.cut = append(t.run.cut, lane)
		return
	}
	t.run.lanes[lane] = done.Seq
	t.run.main, t.run.open = max(t.run.main, done.Opened), stepTools
	t.cancelled = t.cancelled || done.Outcome == OutcomeCancelled
	if len(t.calls) > 0 && t.err == nil && !t.cancelled && t.ctx.Err() == nil {
		t.begin(lane)
	}
}
