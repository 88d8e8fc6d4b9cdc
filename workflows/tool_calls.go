package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// toolCalls runs the tool calls of one turn, each on the lowest free lane. As many run at a time as
// there are lanes. Calls of one sequence run one after the other; later calls of other sequences
// start meanwhile. All calls that have started end before the turn does. None starts after a
// failure or a cancel, except for suspended subagents.
type toolCalls struct {
	run       *run
	ctx       workflow.Context
	messageID string
	step      runs.Step
	calls     []call // those that have not begun
	changes   workflow.Selector
	share     int          // of the subagents that there may be, for each call that hands work to one
	busy      map[int]bool // sequences of which a call is under way

	children  *children // the subagents that work for them
	underWay  int
	cancelled bool
	expired   bool              // the step's time was over while subagents waited
	suspended []runs.ToolAnswer // of subagents that wait
	questions []runs.Interrupt  // calls whose tools ask
	dropped   []droppedCall
	err       error
}

// droppedCall is a decided call that was cancelled before it took effect.
type droppedCall struct {
	call
	lane int
}

// call is a tool call that is to be made, or answered without being made.
type call struct {
	index    int // its place in the message
	id, tool string
	queue    string
	sequence int
	decision *runs.Decision
	onExpiry runs.OnExpiry
	delegate *runs.AgentRef      // the agent that it hands work to
	child    string              // the workflow that it works in
	handsTo  *runs.HandoffTarget // the agent that it hands the thread over to
	// resumes is the subagent that goes on to work for it, waits what it has waited for.
	resumes  *runs.SuspendedChild
	waits    *runs.Interrupts
	votes    []runs.Vote
	remember string
	raised   *runs.Question // what its tool has asked
}

// freeCalls returns the calls of an answer that are no interrupts, without the one that hands the
// thread over.
func freeCalls(a runs.ModelAnswer) []call {
	var calls []call
	for i := range a.Count() {
		switch {
		case a.Handoff.Is(i):
		case i >= len(a.Calls):
			calls = append(calls, call{index: i})
		case !a.Calls[i].IsInterrupt():
			c := a.Calls[i]
			calls = append(calls, call{index: i, id: c.ID, tool: c.Tool, queue: c.Queue, sequence: c.Sequence, delegate: c.Agent(a.Subagents)})
		}
	}
	return calls
}

// callTools runs the calls of a turn. over tells that the run ends; otherwise waits has the
// interrupts of subagents and the questions of tools.
func (r *run) callTools(ctx workflow.Context, t toolCalls, waits *runs.Interrupts) (end ending, over bool) {
	var ok bool
	if t.share, ok = r.shareSubagents(t.calls); !ok {
		return limit(runs.CodeLimitSubagents, "the run reached its limit of %d subagents", runs.MaxSubagents), true
	}
	t.run, t.ctx, t.changes, t.busy = r, ctx, workflow.NewSelector(ctx), map[int]bool{}
	t.children = &children{run: r, ctx: ctx, stopped: t.isStopped, fails: t.fails, otherWork: t.otherWork, interruptsSoFar: func(workflow.Context) *runs.Interrupts { return t.interruptsSoFar(*waits) }}
	t.children.listen(ctx, t.changes)
	atOnce := min(len(t.calls), runs.MaxLanes)
	r.log.ProvideLanes(atOnce)
	for lane := 0; lane < atOnce; lane++ {
		t.start(lane)
	}
	for t.underWay > 0 {
		t.await(ctx)
	}
	if ctx.Err() != nil || t.cancelled {
		t.recordDropped()
	}
	if t.err != nil && r.log.OpenStep != t.step.Name {
		r.noteFailedStep(t.step, nil)
	}
	for _, s := range t.suspended {
		waits.Adopt(*s.Suspended, s.Interrupts)
	}
	waits.Add(t.questions)
	if len(t.suspended) == 0 || t.err != nil || t.expired {
		r.resumeChildren(ctx)
	}
	switch {
	case t.expired && ctx.Err() == nil:
		return ending{outcome: runs.OutcomeError, code: timeout.Code, message: timeout.Message}, true
	case t.err != nil:
		return r.failure(ctx, t.err), true
	case t.cancelled || ctx.Err() != nil && !r.isDoneDespiteCancel(len(t.calls)):
		return ending{outcome: runs.OutcomeCancelled}, true
	case len(t.suspended)+len(t.questions) > 0 && !r.fitsWithInterrupts(waits):
		return limit(runs.CodeLimitParallelTools, "the run waits for more people than it can"), true
	}
	return ending{}, false
}

// await waits until a call ends or a subagent that waits can continue, and processes that.
// Subagents no longer wait when the turn has failed, or the step's deadline has passed.
func (t *toolCalls) await(ctx workflow.Context) {
	var until time.Time
	if l := t.run.activeStep(); l != nil {
		until = l.Deadline
	}
	t.children.await(ctx, t.changes, until)
	t.expired = t.expired || !until.IsZero() && !workflow.Now(ctx).Before(until) && t.children.isInterrupted()
	if t.isStopped() {
		t.children.cancelInterrupted()
	}
	t.children.replyResolved(ctx)
}

// isStopped reports whether no interrupts are taken any more.
func (t *toolCalls) isStopped() bool { return t.err != nil || t.expired || t.ctx.Err() != nil }

func (t *toolCalls) fails(err error) { t.err = errors.Join(t.err, err) }

// otherWork returns how many calls are under way that are no subagents.
func (t *toolCalls) otherWork() int { return t.underWay - len(t.children.running) }

// interruptsSoFar returns the interrupts that the turn has now.
func (t *toolCalls) interruptsSoFar(waits runs.Interrupts) *runs.Interrupts {
	waits.Suspended, waits.Calls = slices.Clone(waits.Suspended), slices.Clone(waits.Calls)
	for _, s := range t.suspended {
		waits.Adopt(*s.Suspended, s.Interrupts)
	}
	waits.Add(t.questions)
	return &waits
}

// next takes the next call that may start; ok is false if there is none. The calls that are left
// then wait for others of their sequence, and take over their lanes.
func (t *toolCalls) next() (c call, ok bool) {
	at := slices.IndexFunc(t.calls, func(c call) bool { return !t.busy[c.sequence] && (c.resumes != nil || t.ctx.Err() == nil) })
	if at < 0 {
		return call{}, false
	}
	c = t.calls[at]
	t.calls = slices.Delete(t.calls, at, at+1)
	t.busy[c.sequence] = c.sequence > 0
	return c, true
}

// start starts the next call on a lane, if one may start.
func (t *toolCalls) start(lane int) {
	c, ok := t.next()
	if !ok {
		return
	}
	in, summary := t.request(c, lane), "tool"
	if c.id != "" {
		summary = "tool: " + c.tool
	}
	t.underWay++
	if c.isForSubagent() {
		t.run.delegation.subagents++
		child := t.startSubagent(&c, in)
		t.changes.AddFuture(child, func(f workflow.Future) { t.onEnd(c, lane, f) })
		return
	}
	if c.queue != "" && c.isMade() {
		t.sendToQueue(c, in, summary)
		return
	}
	ctx := t.ctx
	if in.OutlastsCancel {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	ctx = workflow.WithActivityOptions(ctx, t.run.options(ctx, summary))
	t.changes.AddFuture(workflow.ExecuteActivity(ctx, runs.ActivityCallTool, in), func(f workflow.Future) { t.onEnd(c, lane, f) })
}

// startSubagent starts the subagent that works for a call.
func (t *toolCalls) startSubagent(c *call, in runs.ToolCall) (child workflow.ChildWorkflowFuture) {
	ctx, cancel := workflow.WithCancel(t.ctx)
	child = t.run.restartChild(ctx, c.resumes, func(ctx workflow.Context) (child workflow.ChildWorkflowFuture) {
		c.child, child = t.run.startSubagent(ctx, *c, in, t.share, t.ctx.Err() != nil)
		return child
	})
	t.children.add(ctx, c.child, child, cancel)
	return child
}

// request returns the activity input for a call on a lane.
func (t *toolCalls) request(c call, lane int) runs.ToolCall {
	in := runs.ToolCall{Step: t.step, Open: t.step.ID, Lane: lane, LaneAfter: t.run.log.Lanes[lane], CallID: c.id, MessageID: t.messageID, Decision: c.decision, OnExpiry: c.onExpiry}
	in.Votes, in.Remember = c.votes, c.remember
	in.ID = fmt.Sprintf("%s/%d", t.step.ID, c.index)
	if c.handsTo != nil {
		in.HandOverTo = c.handsTo.Agent
	}
	if c.raised != nil {
		in.Question = c.raised.Seq
	}
	if c.id == "" {
		in.Index = c.index
	}
	if in.Chained = t.run.interpreter().chainAdvance(t.ctx, c); in.Chained != nil && !runs.Fits(in) {
		in.Chained = nil
	}
	in.OutlastsCancel = t.run.outlastsCancel(c)
	if t.step.After == 0 {
		in.Opens, in.Announces = t.run.opening()
	}
	return in
}

// outlastsCancel reports whether a call ends by itself when the run is cancelled. A call that waits
// for workers of its own task queue does not.
func (r *run) outlastsCancel(c call) bool {
	l := r.activeStep()
	return l != nil && l.OutlastsCancel && c.queue == "" && c.delegate == nil && c.isMade()
}

// recordDropped records what was decided about calls that were cancelled before they took effect:
// people were told that their decision counts. None of the tools is called.
func (t *toolCalls) recordDropped() {
	left := t.dropped
	for _, c := range t.calls {
		if c.decision != nil {
			left = append(left, droppedCall{call: c})
		}
	}
	if len(left) == 0 {
		return
	}
	ctx, cancel := workflow.NewDisconnectedContext(t.ctx)
	defer cancel()
	ctx = workflow.WithActivityOptions(ctx, t.run.options(ctx, "write down"))
	for _, c := range left {
		in := t.request(c.call, c.lane)
		in.Cancelled, in.Compensates = true, true
		t.underWay++
		t.run.log.Retry(c.lane)
		t.onEnd(c.call, c.lane, workflow.ExecuteActivity(ctx, runs.ActivityCallTool, in))
	}
}

// onEnd processes the end of the call on a lane, and gives the lane to the next.
func (t *toolCalls) onEnd(c call, lane int, f workflow.Future) {
	t.underWay--
	delete(t.busy, c.sequence)
	var done runs.ToolAnswer
	err := f.Get(t.ctx, &done)
	if c.child != "" {
		t.children.remove(c.child, &done)
	}
	if err != nil {
		t.err = errors.Join(t.err, err)
		t.run.log.LeaveUnfinished(runs.Lane{Index: lane, After: t.run.log.Lanes[lane], Subagent: c.isForSubagent()})
		if (temporal.IsCanceledError(err) || t.ctx.Err() != nil) && c.decision != nil && !c.isForSubagent() {
			t.dropped = append(t.dropped, droppedCall{c, lane})
		}
		return
	}
	t.run.log.Lanes[lane], t.run.pipeline.chained = done.Seq, done.Advanced
	t.run.log.Main, t.run.log.OpenStep = max(t.run.log.Main, done.Opened), t.step.Name
	t.run.delegation.subagents += done.Subagents
	for _, u := range done.Usage {
		t.run.use(u)
	}
	if done.HandedOver {
		t.run.handOver(t.ctx, *c.handsTo)
	}
	if done.Suspended != nil {
		t.suspended = append(t.suspended, done)
	}
	if done.Question != nil {
		t.addQuestion(c, done)
	}
	t.cancelled = t.cancelled || done.Outcome == runs.OutcomeCancelled
	if len(t.calls) > 0 && t.err == nil && !t.cancelled && t.ctx.Err() == nil {
		t.start(lane)
	}
}
