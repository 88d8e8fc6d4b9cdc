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

// toolCalls runs the tool calls of one turn. At most runs.MaxLanes run at a time, each on a lane of
// its own; a call that ends gives its lane to the next. Calls of one sequence run one after the
// other; calls of other sequences run in parallel. All calls that have started end before the turn
// does. None starts after a failure or a cancel, except for suspended subagents.
//
// A call is an activity tool.call, a child workflow agent.child (subagent), or an activity on a
// task queue of its own (task_queue.go). callTools makes the value and drops it at the end of the
// turn: nothing of it goes to another execution. Only workflow coroutines touch it.
type toolCalls struct {
	run               *run
	ctx               workflow.Context
	step              runs.Step         // shared by all calls: "tools" of the turn
	calls             []call            // those that have not started
	interrupts        *runs.Interrupts  // of the message with the calls; callTools adds those of calls
	changes           workflow.Selector // ends of calls, and signals of subagents
	subagentsPerChild int               // how many subagents each subagent of the turn may start itself
	children          *children         // the subagents that work for calls
	activeSequences   map[int]bool      // sequences that have a call under way
	activeCalls       int               // calls that have started and not ended
	// awaitTask tells that the calls are not made within the workflow task: subagents or other task
	// queues take part, and wait for its end, or calls wait for the lanes of others. The log knows a
	// call by its lane, so the history must have the order in which lanes become free.
	awaitTask bool
	callResults
}

// callResults is what the ended calls of a turn have brought, beyond their records in the log.
type callResults struct {
	cancelled      bool              // an activity found a cancel request in the log before the signal arrived
	expired        bool              // the step's deadline passed while subagents waited for interrupts
	suspended      []runs.ToolAnswer // of subagents that ended with their interrupts
	questions      []runs.Interrupt  // of calls whose tool asked a question, or that wait for the client
	cancelledCalls []cancelledCall   // decided, and cancelled before they took effect
	notBegun       []cancelledCall   // not executed, because the run stops
	err            error             // of all calls that failed; nil = none
}

// cancelledCall is a decided call that was cancelled before it took effect. Its decision is still
// recorded.
type cancelledCall struct {
	call
	lane int // on which it was started; 0 also if it was not
}

// call is a tool call that is to be made, or answered without being made. It comes from a model's
// answer (freeCalls), or from a decided or resumed interrupt (decidedCalls).
type call struct {
	index int // in the message
	// id and tool are "" for a call beyond runs.MaxCalls: then index identifies it.
	id, tool string
	queue    string              // task queue of the tool's workers; "" = runs.TaskQueue
	sequence int                 // calls with the same number run one after the other; 0 = none
	decision *runs.Decision      // nil = the call was no interrupt
	onExpiry runs.OnExpiry       // of an expired approval
	subagent *runs.AgentRef      // the agent that works for it as a subagent; nil = none
	child    string              // workflow ID of the subagent, once it has started
	handoff  *runs.HandoffTarget // the agent to which it hands the thread over; nil = none
	// resumes is the suspended subagent that continues to work for the call, interrupts
	// has its decided interrupts. Both are nil for a call that begins.
	resumes    *runs.SuspendedChild
	interrupts *runs.Interrupts
	// votes are the approvals of a quorum before the deciding one. remember is the digest of the
	// rule, if the approval covers further calls.
	votes            []runs.Vote
	remember         string
	answeredQuestion *runs.Question // the question that its tool asked, which is now answered; nil = none
	forClient        bool           // the client makes the call if it is approved
}

// freeCalls returns the calls of an answer that are no interrupts, without the handoff. They
// include the calls beyond runs.MaxCalls, of which only the index is known.
func freeCalls(a runs.ModelAnswer) []call {
	var calls []call
	for i := range a.Count() {
		switch {
		case a.Handoff.Is(i):
		case i >= len(a.Calls):
			calls = append(calls, call{index: i})
		case !a.Calls[i].IsInterrupt():
			c := a.Calls[i]
			calls = append(calls, call{index: i, id: c.ID, tool: c.Tool, queue: c.Queue, sequence: c.Sequence, subagent: c.Agent(a.Subagents)})
		}
	}
	return calls
}

// callTools runs calls of the message of interrupts, as parts of a step, and blocks until all that
// started have ended. It adds the interrupts of suspended subagents and the questions of tools to
// interrupts. The ending is zero, unless the run or step ends: with a failure, a cancel, a passed
// deadline, or because a payload has no room for the interrupts.
func (r *run) callTools(ctx workflow.Context, step runs.Step, calls []call, interrupts *runs.Interrupts) ending {
	subagentsPerChild, ok := r.shareSubagents(calls)
	if !ok {
		return limitEnding(runs.CodeLimitSubagents, "the run reached its limit of %d subagents", runs.MaxSubagents)
	}
	t := &toolCalls{
		run: r, ctx: ctx, step: step, calls: calls, interrupts: interrupts, subagentsPerChild: subagentsPerChild,
		changes: workflow.NewSelector(ctx), activeSequences: map[int]bool{},
		awaitTask: len(calls) > runs.MaxLanes || slices.ContainsFunc(calls, func(c call) bool { return c.isForSubagent() || c.isForQueue() }),
	}
	t.children = &children{
		run: r, ctx: ctx, refusesInterrupts: t.refusesInterrupts, addError: t.addError, otherWork: t.otherWork,
		interruptsSoFar: t.interruptsSoFar,
	}
	t.children.listen(ctx, t.changes)
	concurrency := min(len(t.calls), runs.MaxLanes)
	r.log.ProvideLanes(concurrency)
	for lane := 0; lane < concurrency; lane++ {
		t.start(lane)
	}
	for t.activeCalls > 0 {
		t.await(ctx)
	}
	if ctx.Err() != nil || t.cancelled {
		t.recordCancelledDecisions()
	}
	left := len(t.calls) + len(t.notBegun)
	// No call has reported that the step is open: the next activity must fence a late opening of
	// it.
	if t.err != nil && r.log.OpenStep != t.step.Name {
		r.noteFailedStep(t.step, nil)
	}
	for _, s := range t.suspended {
		interrupts.Adopt(*s.Suspended, s.Interrupts)
	}
	interrupts.Add(t.questions)
	if len(t.suspended) == 0 || t.err != nil || t.expired {
		r.abortSuspension(ctx)
	}
	switch {
	case t.expired && ctx.Err() == nil:
		return endingFromFailure(timeout)
	case t.err != nil:
		return r.endingFromError(ctx, t.err)
	case t.cancelled || ctx.Err() != nil && !r.isDoneDespiteCancel(ctx, left):
		return cancelledEnding
	case len(t.suspended)+len(t.questions) > 0 && !r.admitInterrupts(interrupts):
		return tooManyInterruptsEnding
	}
	return ending{}
}

// await blocks until a call ends or the interrupts of a waiting subagent are resolved, and
// processes all such changes. It cancels waiting subagents when the turn has failed or the step's
// deadline has passed.
func (t *toolCalls) await(ctx workflow.Context) {
	var until time.Time
	if active := t.run.activeStep(); active != nil {
		until = active.Deadline
	}
	t.children.await(ctx, t.changes, until)
	t.expired = t.expired || !until.IsZero() && !workflow.Now(ctx).Before(until) && t.children.isInterrupted()
	if t.refusesInterrupts() {
		t.children.cancelInterrupted()
	}
	t.children.replyResolved(ctx)
}

// refusesInterrupts reports whether interrupts are refused: the turn has failed, expired, or is
// cancelled.
func (t *toolCalls) refusesInterrupts() bool { return t.err != nil || t.expired || t.ctx.Err() != nil }

// addError stops the turn with an error of its children.
func (t *toolCalls) addError(err error) { t.err = errors.Join(t.err, err) }

// otherWork returns how many calls without a subagent are under way.
func (t *toolCalls) otherWork() int { return t.activeCalls - len(t.children.running) }

// interruptsSoFar returns a copy of t.interrupts with the interrupts of subagents that have ended
// and the questions of tools: what the run would end with, if it ended now.
func (t *toolCalls) interruptsSoFar(workflow.Context) *runs.Interrupts {
	interrupts := *t.interrupts
	interrupts.Suspended, interrupts.Items = slices.Clone(interrupts.Suspended), slices.Clone(interrupts.Items)
	for _, s := range t.suspended {
		interrupts.Adopt(*s.Suspended, s.Interrupts)
	}
	interrupts.Add(t.questions)
	return &interrupts
}

// nextCall returns the index in calls of the next call that may start; -1 = there is none. Calls of
// a busy sequence are skipped: onEnd starts them on the lane that their predecessor frees. After a
// failure or a cancel only suspended subagents start, because they may have something to compensate
// for, and calls that the log may have.
func (t *toolCalls) nextCall() int {
	hasFailed, stops := t.err != nil || t.cancelled, t.run.isStopping(t.ctx)
	isOver := hasFailed || stops || t.ctx.Err() != nil
	mayBeRecorded := stops && !hasFailed && !t.awaitTask
	return slices.IndexFunc(t.calls, func(c call) bool {
		return !t.activeSequences[c.sequence] && (c.resumes != nil || !isOver || mayBeRecorded)
	})
}

// start starts the next call on a lane, if one may start: as a child workflow, on the tool's task
// queue, or as a step of this worker (step_execution.go).
func (t *toolCalls) start(lane int) {
	at := t.nextCall()
	if at < 0 {
		return
	}
	c := t.calls[at]
	t.calls = slices.Delete(t.calls, at, at+1)
	t.activeSequences[c.sequence] = c.sequence > 0
	in, summary := t.request(c, lane), "tool"
	if c.id != "" {
		summary = "tool: " + c.tool
	}
	t.activeCalls++
	if c.isForSubagent() {
		t.run.delegation.subagents++
		child := t.startChild(&c, in)
		t.changes.AddFuture(child, func(future workflow.Future) { t.onEnd(c, lane, future) })
		return
	}
	if c.isForQueue() {
		t.sendToQueue(c, in, summary)
		return
	}
	ctx, e := t.ctx, t.run.scheduling(t.ctx, runs.ActivityCallTool, summary)
	e.awaitsTask = e.awaitsTask || t.awaitTask
	e.isLogAhead = func(ctx workflow.Context) bool {
		return t.run.isLogAhead(ctx, &runs.CallLane{Lane: in.Lane, After: in.LaneAfter})
	}
	// A step compensates for the call, so its effect must be known: the call ends by itself.
	if in.OutlastsCancel {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	ended, end := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) { end.Set(executeStep[runs.ToolAnswer](ctx, in, e)) })
	t.changes.AddFuture(ended, func(future workflow.Future) { t.onEnd(c, lane, future) })
}

// startChild starts the child workflow of the subagent that works for a call, and sets c.child. The
// subagents that are still to start divide what the run has left.
func (t *toolCalls) startChild(c *call, in runs.ToolCall) (child workflow.ChildWorkflowFuture) {
	ctx, cancel := workflow.WithCancel(t.ctx)
	n := 1
	for _, other := range t.calls {
		if other.isForSubagent() {
			n++
		}
	}
	limits := t.children.share(c.subagent.Limits, n)
	child = t.run.startOrRestartChild(ctx, c.resumes, func(ctx workflow.Context) (child workflow.ChildWorkflowFuture) {
		c.child, child = t.run.startSubagent(ctx, *c, in, limits, t.subagentsPerChild, t.ctx.Err() != nil)
		return child
	})
	t.children.add(ctx, c.child, limits, child, cancel)
	return child
}

// request returns the activity input for a call on a lane. The ID of the call's step contains the
// index of the call, not the lane: it is the same wherever the call runs.
func (t *toolCalls) request(c call, lane int) runs.ToolCall {
	in := runs.ToolCall{Step: t.step, TurnStepID: t.step.ID, Lane: lane, LaneAfter: t.run.log.Lanes[lane], CallID: c.id, MessageID: t.interrupts.MessageID, Decision: c.decision, OnExpiry: c.onExpiry}
	in.Votes, in.RememberedRule = c.votes, c.remember
	in.ID = fmt.Sprintf("%s/%d", t.step.ID, c.index)
	if c.handoff != nil {
		in.HandOverTo, in.HandOverRevision = c.handoff.Agent, c.handoff.Revision
	}
	in.ForClient = c.forClient
	if c.answeredQuestion != nil {
		in.QuestionRecord, in.IsRemote = c.answeredQuestion.Seq, c.answeredQuestion.Remote
	}
	if c.id == "" {
		in.Index = c.index
	}
	in.OutlastsCancel = t.run.outlastsCancel(c)
	// The run has no record yet: it begins with decided calls, and these open it.
	if t.step.After == 0 {
		in.Beginning, in.Announces = t.run.firstStepOpening()
	}
	return in
}

// outlastsCancel reports whether a cancel of the run does not stop a call, because a step
// compensates for it. It does stop a call that waits for workers of its own task queue, and a
// subagent.
func (r *run) outlastsCancel(c call) bool {
	active := r.activeStep()
	return active != nil && active.OutlastsCancel && c.queue == "" && c.subagent == nil && c.isMade()
}

// recordCancelledDecisions records the decisions about calls that were cancelled before they took
// effect: the approver was told that the decision counts. tool.call writes them without calling the
// tool. It blocks until all are written, also when the turn is cancelled.
func (t *toolCalls) recordCancelledDecisions() {
	left := t.cancelledCalls
	for _, c := range t.calls {
		t.notBegun = append(t.notBegun, cancelledCall{call: c})
	}
	t.calls = nil
	for _, c := range t.notBegun {
		if c.decision != nil {
			left = append(left, c)
		}
	}
	if len(left) == 0 {
		return
	}
	ctx, cancel := workflow.NewDisconnectedContext(t.ctx)
	defer cancel()
	ctx = workflow.WithActivityOptions(ctx, t.run.options(ctx, "record decision"))
	for _, c := range left {
		in := t.request(c.call, c.lane)
		in.Cancelled, in.Compensates = true, true
		t.activeCalls++
		t.run.log.Retry(c.lane)
		t.onEnd(c.call, c.lane, workflow.ExecuteActivity(ctx, runs.ActivityCallTool, in))
	}
}

// onEnd processes the end of the call on a lane, and starts the next call there. A failed call
// leaves its lane unfinished: a late attempt may still write, and the next activity of the main
// lane fences it.
func (t *toolCalls) onEnd(c call, lane int, future workflow.Future) {
	t.activeCalls--
	delete(t.activeSequences, c.sequence)
	var done runs.ToolAnswer
	err := future.Get(t.ctx, &done)
	if errors.Is(err, errNotBegun) {
		t.notBegun = append(t.notBegun, cancelledCall{c, lane})
		t.start(lane)
		return
	}
	if c.child != "" {
		t.children.remove(c.child, &done)
	}
	if err != nil {
		t.err = errors.Join(t.err, err)
		t.run.log.LeaveUnfinished(runs.Lane{Index: lane, After: t.run.log.Lanes[lane], Subagent: c.isForSubagent()})
		if (temporal.IsCanceledError(err) || t.ctx.Err() != nil) && c.decision != nil && !c.isForSubagent() {
			t.cancelledCalls = append(t.cancelledCalls, cancelledCall{c, lane})
		}
		if t.nextCall() >= 0 { // on a new lane: on this one a late attempt may still write
			t.run.log.ProvideLanes(len(t.run.log.Lanes) + 1)
			t.start(len(t.run.log.Lanes) - 1)
		}
		return
	}
	t.run.log.Lanes[lane] = done.Seq
	t.run.log.NoteRecord(max(t.run.log.Main, done.Opened), t.step.Name)
	t.run.delegation.subagents += done.Subagents
	for _, u := range done.Usage {
		t.run.use(u)
	}
	if done.HandedOver {
		t.run.handOver(t.ctx, *c.handoff)
	}
	if done.Suspended != nil {
		t.suspended = append(t.suspended, done)
	}
	if done.Question != nil {
		t.addQuestion(c, done)
	}
	if done.ForClient {
		t.questions = append(t.questions, runs.Interrupt{Call: runs.Call{ID: c.id, Client: true}, Index: c.index})
	}
	t.cancelled = t.cancelled || done.Outcome == runs.OutcomeCancelled
	t.start(lane)
}
