package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// Branches of a pipeline step (parallel or map) are child workflows that run in parallel. Each has
// a position and a lane of its own, and clients see it as a subagent. runBranches executes the
// step; runBranch is the branch itself, in its child workflow.
//
// A branch that waits for interrupts keeps its slot, so that no more branches wait than there are
// slots. When all work waits, the branches end with their interrupts, like subagents, and restart
// in the run that has the decisions.

// maxFailures bounds the branches that may fail, since the position lists each: beyond it no
// further branch begins. maxReasons bounds the different failures in the list, maxMessageBytes the
// bytes of their messages.
const (
	maxFailures     = 1000
	maxReasons      = 16
	maxMessageBytes = 2 << 10
)

// branches runs the branches of one step, in one execution. runSomeBranches makes it and drops it
// when no branch is running; progress has what later executions need. Only workflow
// coroutines touch it.
type branches struct {
	run *run
	// ctx is the context of all branches; cancel ends it.
	ctx       workflow.Context
	cancel    workflow.CancelFunc
	progress  *runs.Branches    // the step and its progress, in the run's position
	changes   workflow.Selector // ends of branches, and their signals
	children  *children
	ids       map[int]string    // workflow IDs of running branches, by index
	free      []int             // slots without a branch; a slot is the index of a lane
	suspended []runs.ToolAnswer // of branches that ended with their interrupts
	cancelled bool              // a branch found the cancel request in the log before the signal arrived
	expired   bool              // the step's deadline passed while branches waited for interrupts
	err       error             // the step fails with it
}

// runBranches executes the branches of the active step, until none is left. The ending
// is how the step ended: with interrupts, an error or a cancel. If it is zero, the position has the
// step's event. The error is nil except to continue as new.
func (p pipelineExecutor) runBranches(ctx workflow.Context) (end ending, err error) {
	if p.position.Branches.Next == 0 {
		if end, err = p.checkBeforeBranches(ctx); end.isOver() || err != nil {
			return end, err
		}
	}
	for {
		more, end := p.runSomeBranches(ctx)
		if !more || end.isOver() {
			return end, nil
		}
		if err := p.run.safePoint(ctx); err != nil {
			return ending{}, err
		}
	}
}

// runSomeBranches restarts suspended branches, starts further ones, and blocks until none is
// running. more reports that others are left, because the history has grown long: the caller
// continues as new. The ending is that of runBranches.
func (p pipelineExecutor) runSomeBranches(ctx workflow.Context) (more bool, end ending) {
	b := &branches{run: p.run, progress: p.position.Branches, changes: workflow.NewSelector(ctx), ids: map[int]string{}}
	b.ctx, b.cancel = workflow.WithCancel(ctx)
	defer b.cancel()
	b.children = &children{run: p.run, ctx: b.ctx, refusesInterrupts: b.refusesInterrupts, addError: b.fail, otherWork: func() int { return 0 }, interruptsSoFar: b.interruptsSoFar}
	b.children.listen(ctx, b.changes)
	for slot := range b.progress.Concurrency {
		b.free = append(b.free, slot)
	}
	if set := p.run.in.Resume; b.progress.Suspended {
		b.progress.Suspended = false
		for i := range set.Suspended {
			if s := &set.Suspended[i]; s.Parent == 0 && s.Branch != nil { // deeper children restart below their parent
				b.start(*s.Branch, set.OfChild(i+1), s)
			}
		}
	}
	for b.startMore(ctx); len(b.ids) > 0; b.startMore(ctx) {
		b.await(ctx)
	}
	more, end = b.outcome(ctx)
	if end.interrupts == nil {
		p.run.abortSuspension(ctx)
	}
	return more, end
}

// startMore starts branches in the free slots, unless the step has stopped, failed, or passed its
// deadline. With a long history it starts none, so that the execution can continue as new.
func (b *branches) startMore(ctx workflow.Context) {
	for len(b.free) > 0 && b.progress.Next < b.progress.Count && !b.isStopped() && !b.isOverdue(ctx) && ctx.Err() == nil && (!historyIsLong(ctx) || b.run.cannotContinueAsNew()) {
		b.start(b.progress.Next, nil, nil)
		b.progress.Next++
	}
}

// hasFailed reports whether a failed branch fails the whole step.
func (b *branches) hasFailed() bool { return b.progress.StopOnFailure && len(b.progress.Failures) > 0 }

// isStopped reports whether no branch starts.
func (b *branches) isStopped() bool { return b.err != nil || b.cancelled || b.hasFailed() || b.expired }

// refusesInterrupts reports whether interrupts are refused: the step is stopped or cancelled.
func (b *branches) refusesInterrupts() bool { return b.isStopped() || b.ctx.Err() != nil }

// cancelAll cancels the running branches. It forgets their interrupts, which children.remove
// cancels when the branches end.
func (b *branches) cancelAll() {
	b.cancel()
	b.run.interrupts.drop(b.run.interrupts.concurrent...)
}

// fail fails the step with an error, and cancels its branches.
func (b *branches) fail(err error) {
	b.err = err
	b.cancelAll()
}

// isOverdue reports whether the step's deadline has passed.
func (b *branches) isOverdue(ctx workflow.Context) bool {
	return !b.progress.Deadline.IsZero() && !workflow.Now(ctx).Before(b.progress.Deadline)
}

// start starts a branch in the first free slot, or restarts a suspended one: interrupts are its
// decided interrupts, resumes is its state. Both are nil for a branch that begins. The branches of
// the free slots divide what the run has left.
func (b *branches) start(index int, interrupts *runs.Interrupts, resumes *runs.SuspendedChild) {
	slot := branchSlot{index, b.free[0], max(b.run.log.Main, b.progress.HighestRecord)}
	limits := b.children.share(b.run.in.Limits, min(len(b.free), b.progress.Count-index))
	b.free = b.free[1:]
	p := b.run.executor()
	b.ids[index] = p.branchID(b.ctx, b.progress, index)
	child := b.run.startOrRestartChild(b.ctx, resumes, func(ctx workflow.Context) workflow.ChildWorkflowFuture {
		in := p.branchInput(b.progress, slot, limits)
		if resumes == nil {
			in.Progress.Position = p.branchPosition(b.progress, index)
		}
		in.Resume = interrupts
		in.Progress.Cancelled = resumes != nil && b.ctx.Err() != nil
		return p.startBranch(ctx, b.ids[index], in)
	})
	b.children.add(b.ctx, b.ids[index], limits, child, b.cancel)
	b.changes.AddFuture(child, func(done workflow.Future) { b.onEnd(slot, done) })
}

// await blocks until a branch ends or has interrupts, or the interrupts of one are resolved, and
// processes that. If the deadline passes while branches wait, it cancels all branches.
func (b *branches) await(ctx workflow.Context) {
	b.children.await(ctx, b.changes, b.progress.Deadline)
	if b.isOverdue(ctx) && b.children.isInterrupted() {
		b.expired = true
		b.cancelAll()
	}
	b.children.replyResolved(ctx)
}

// interruptsSoFar returns the interrupts of the branches that have ended with some.
func (b *branches) interruptsSoFar(ctx workflow.Context) *runs.Interrupts {
	interrupts := b.run.interruptsOfAnswer(ctx, runs.ModelAnswer{})
	for _, s := range b.suspended {
		interrupts.Adopt(*s.Suspended, s.Interrupts)
	}
	return interrupts
}

// branchSlot is where a branch runs: its index in the step, its slot, which is the index of its
// lane, and the record after which it writes there. Lanes are reused, so the record separates it
// from the branch before it.
type branchSlot struct {
	index, slot int
	since       uint64
}

// onEnd processes the end of a branch: its failure, its interrupts, or its success. Usage and
// subagents of the branch count for the run.
func (b *branches) onEnd(p branchSlot, done workflow.Future) {
	var answer runs.ToolAnswer
	err := done.Get(b.ctx, &answer)
	b.children.remove(b.ids[p.index], &answer)
	delete(b.ids, p.index)
	if err != nil { // the branch has no answer: the next advance reads its usage from the log
		b.free = append(b.free, p.slot)
		b.run.log.LeaveUnfinished(runs.Lane{Index: p.slot, After: p.since, Subagent: true, Branch: true})
		if temporal.IsCanceledError(err) && (b.cancelled || b.hasFailed() || b.expired) {
			b.addFailure(p.index, pipeline.Failure{Code: string(runs.OutcomeCancelled)})
		} else {
			b.fail(err)
		}
		return
	}
	b.progress.HighestRecord = max(b.progress.HighestRecord, answer.Seq)
	for _, u := range answer.Usage {
		b.run.budget.Use(u)
	}
	b.run.delegation.subagents += answer.Subagents
	if answer.Suspended != nil {
		b.suspended = append(b.suspended, answer) // it keeps its slot
		return
	}
	b.free = append(b.free, p.slot)
	slices.Sort(b.free)
	if answer.Failed == nil {
		if answer.MayNeedCompensation {
			b.progress.NoteEnd(p.index, answer.Seq)
		}
		return
	}
	b.cancelled = b.cancelled || answer.Outcome == runs.OutcomeCancelled && !b.isStopped()
	b.addFailure(p.index, *answer.Failed)
	if b.progress.StopOnFailure || b.cancelled {
		b.cancelAll()
	}
}

// addFailure adds a failed branch to the list in the position, which groups equal failures.
// Failures beyond maxReasons join the last group. Beyond maxFailures the step stops.
func (b *branches) addFailure(index int, failure pipeline.Failure) {
	if !b.hasRoomFor(failure) {
		failure.Message = ""
	}
	at := slices.IndexFunc(b.progress.Failures, func(other runs.FailureGroup) bool { return other.SameAs(failure) })
	switch {
	case at < 0 && len(b.progress.Failures) < maxReasons:
		at = len(b.progress.Failures)
		b.progress.Failures = append(b.progress.Failures, runs.FailureGroup{Failure: failure})
	case at < 0:
		at = maxReasons - 1
	}
	b.progress.Failures[at].Branches = append(b.progress.Failures[at].Branches, index)
	failed := 0
	for _, reason := range b.progress.Failures {
		failed += len(reason.Branches)
	}
	if failed > maxFailures {
		b.progress.StopOnFailure = true
	}
}

// hasRoomFor reports whether the list has room for the message of a failure, quoted as in JSON.
func (b *branches) hasRoomFor(failure pipeline.Failure) bool {
	n := len(strconv.Quote(failure.Message))
	for _, reason := range b.progress.Failures {
		if reason.SameAs(failure) {
			return true
		}
		n += len(strconv.Quote(reason.Message))
	}
	return n <= maxMessageBytes
}

// outcome returns how the step ends, when no branch is running. more reports that branches are left
// to start. If the ending is zero and more is false, outcome has set the position's event.
func (b *branches) outcome(ctx workflow.Context) (more bool, end ending) {
	r := b.run
	failed := b.hasFailed()
	switch {
	case b.cancelled, ctx.Err() != nil && !r.takesOver(ctx):
		return false, cancelledEnding
	case b.err != nil && ctx.Err() == nil:
		return false, r.endingFromError(ctx, b.err)
	}
	if end := r.checkRunLimits(); end.isOver() {
		return false, end
	}
	switch {
	case b.isOverdue(ctx) && len(b.suspended) == 0: // with suspended branches the next run fails the step
		r.pipeline.position.Event = &pipeline.Event{Kind: pipeline.EventFailed, Failure: &timeout}
		return false, ending{}
	case len(b.suspended) > 0 && !failed:
		b.progress.Suspended = true
		interrupts := b.interruptsSoFar(ctx)
		if !interrupts.Fits(r.in) {
			return false, tooManyInterruptsEnding
		}
		return false, withInterrupts(interrupts)
	case b.progress.Next < b.progress.Count && !failed:
		return true, ending{}
	}
	r.pipeline.position.Event = &pipeline.Event{Kind: pipeline.EventJoined}
	return false, ending{}
}

// branchInput returns the input of a branch that is to run in a slot, with its limits. The caller
// adds where the branch begins: the position of a new one, or the interrupts of a suspended one.
func (p pipelineExecutor) branchInput(b *runs.Branches, slot branchSlot, limits runs.Limits) runs.ChildInput {
	r, path := p.run, p.branchPath(b, slot.index)
	child := runs.Child{
		BranchPath: path, Name: path, Index: slot.index, Since: slot.since, CallID: p.branchCallID(path),
		Prefix: r.child.prefix(), Depth: r.child.depth(), Compensates: r.isCompensating(),
	}
	if slot.index < len(b.Names) {
		child.Name = b.Names[slot.index]
	}
	if r.child != nil {
		child.ParentCallID, child.Lanes, child.Hidden = r.child.CallID, slices.Clone(r.child.Lanes), r.child.Hidden
	}
	child.Lanes = append(child.Lanes, slot.slot)
	return runs.ChildInput{
		Input: runs.Input{
			Run: r.in.Run, Hold: true,
			AgentRef: runs.AgentRef{
				Agent: r.in.Agent, Revision: r.in.Revision, Steps: true, Limits: limits,
			},
			Continuation: runs.Continuation{Progress: &runs.Progress{
				Execution: r.execution, Turn: 1,
				Budget: runs.Budget{Deadline: runs.Earlier(b.Deadline, r.budget.Deadline)},
			}},
		},
		Child:     child,
		Subagents: max(0, r.delegation.allowed-r.delegation.subagents) / b.Concurrency,
	}
}

// branchPosition returns the position at which a branch begins: in the active step.
func (p pipelineExecutor) branchPosition(b *runs.Branches, index int) *runs.PipelinePosition {
	step := p.position
	return &runs.PipelinePosition{
		TreePosition: pipeline.TreePosition{Home: step.TreePosition.Home, Branch: step.TreePosition.Into(b.Path, index)},
		Number:       step.Number, Tree: step.Tree, Origin: step.Origin, Input: step.Input, Child: step.Child,
		Items: append(slices.Clone(step.Items), b.Record),
		Event: &pipeline.Event{Kind: pipeline.EventBegun},
	}
}

// startBranch starts the child workflow of a branch.
func (p pipelineExecutor) startBranch(ctx workflow.Context, id string, in runs.ChildInput) workflow.ChildWorkflowFuture {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:   true,
		WorkflowTaskTimeout:   workflow.GetInfo(ctx).WorkflowTaskTimeout,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         "branch: " + in.Child.BranchPath,
	})
	return workflow.ExecuteChildWorkflow(ctx, runs.TypeChild, in)
}

// branchPath returns the path of a branch, which is unique in the run.
func (p pipelineExecutor) branchPath(b *runs.Branches, index int) string {
	return fmt.Sprintf("%s%s/%d", p.position.Prefix(), b.Path, index)
}

// branchID returns the workflow ID of a branch: that of the parent workflow, followed by the path.
// In the thread's own workflow a digest of the run ID comes between them, because a thread's runs
// share its workflow ID.
func (p pipelineExecutor) branchID(ctx workflow.Context, b *runs.Branches, index int) string {
	info, path := workflow.GetInfo(ctx), p.branchPath(b, index)
	if within := p.run.child.branchPrefix(); within != "" {
		return info.WorkflowExecution.ID + "/" + strings.TrimPrefix(path, within)
	}
	return fmt.Sprintf("%s/%s/%s", info.WorkflowExecution.ID, digest(10, p.run.in.Run.ID), path)
}

// branchCallID returns the ID by which the log and clients know a branch. It derives from the run
// that began the pipeline, so it is the same in all runs in which the pipeline continues.
func (p pipelineExecutor) branchCallID(path string) string {
	return "call_" + digest(10, p.position.Origin+"\n"+p.run.child.prefix()+path)
}

// runBranch executes a branch in its child workflow, and returns how it ended. A failure is in the
// answer; the error is nil except to continue as new, or if a suspended branch could not close its
// steps.
func (r *run) runBranch(ctx workflow.Context) (runs.ToolAnswer, error) {
	end, err := r.runTurns(ctx)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	answer := runs.ToolAnswer{Outcome: end.outcome, Usage: r.budget.Usage, Subagents: r.delegation.subagents}
	switch {
	case end.interrupts != nil:
		if err := r.executor().suspendSteps(ctx, end.interrupts); err != nil {
			return runs.ToolAnswer{}, err
		}
		answer.Interrupts, answer.Suspended = end.interrupts, r.suspendedChild(end.interrupts)
		answer.Suspended.Branch = &r.child.Index
	case end.outcome != runs.OutcomeSuccess:
		failure := end.failure()
		failure.Code = cmp.Or(end.code, string(end.outcome))
		answer.Failed = &failure
	default:
		answer.MayNeedCompensation = len(r.pipeline.position.TreePosition.Undo) > 0
	}
	answer.Seq = r.log.Main
	return answer, nil
}

// suspendSteps closes the open steps of a child in the log, because it ends with interrupts. The
// run that restarts the child reopens them.
func (p pipelineExecutor) suspendSteps(ctx workflow.Context, interrupts *runs.Interrupts) error {
	in := runs.AdvanceInput{Step: p.run.ownStep("suspend"), Position: *p.position}
	in.Suspended, _ = interrupts.Open()
	var done runs.AdvanceResult
	return p.runAdvance(ctx, in, &done)
}
