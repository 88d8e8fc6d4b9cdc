package workflows

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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
// when no branch is running; fan has the progress that later executions need. Only workflow
// coroutines touch it.
type branches struct {
	run *run
	// ctx is the context of all branches; cancel ends it.
	ctx       workflow.Context
	cancel    workflow.CancelFunc
	fan       *runs.Branches    // the step and its progress, in the run's position
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
func (p interpreter) runBranches(ctx workflow.Context) (end ending, err error) {
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
func (p interpreter) runSomeBranches(ctx workflow.Context) (more bool, end ending) {
	f := &branches{run: p.run, fan: p.position.Branches, changes: workflow.NewSelector(ctx), ids: map[int]string{}}
	f.ctx, f.cancel = workflow.WithCancel(ctx)
	defer f.cancel()
	f.children = &children{run: p.run, ctx: f.ctx, refusesInterrupts: f.isStopped, addError: f.fail, otherWork: func() int { return 0 }, interruptsSoFar: f.interruptsSoFar}
	f.children.listen(ctx, f.changes)
	for slot := range f.fan.Concurrency {
		f.free = append(f.free, slot)
	}
	if set := p.run.in.Resume; f.fan.Suspended {
		f.fan.Suspended = false
		for i := range set.Suspended {
			if s := &set.Suspended[i]; s.Parent == 0 && s.Branch != nil { // deeper children restart below their parent
				f.start(*s.Branch, set.OfChild(i+1), s)
			}
		}
	}
	for f.startMore(ctx); len(f.ids) > 0; f.startMore(ctx) {
		f.await(ctx)
	}
	more, end = f.outcome(ctx)
	if end.interrupts == nil {
		p.run.abortSuspension(ctx)
	}
	return more, end
}

// startMore starts branches in the free slots, unless the step has stopped, failed, or passed its
// deadline. With a long history it starts none, so that the execution can continue as new.
func (f *branches) startMore(ctx workflow.Context) {
	for len(f.free) > 0 && f.fan.Next < f.fan.Count && !f.isStopped() && !f.isOverdue(ctx) && ctx.Err() == nil && (!historyIsLong(ctx) || f.run.cannotContinueAsNew()) {
		f.start(f.fan.Next, nil, nil)
		f.fan.Next++
	}
}

// hasFailed reports whether a failed branch fails the whole step.
func (f *branches) hasFailed() bool { return f.fan.StopOnFailure && len(f.fan.Failures) > 0 }

// isStopped reports whether no branch starts, and interrupts are refused.
func (f *branches) isStopped() bool { return f.err != nil || f.cancelled || f.hasFailed() || f.expired }

// cancelAll cancels the running branches. It forgets their interrupts, which children.remove
// cancels when the branches end.
func (f *branches) cancelAll() {
	f.cancel()
	f.run.interrupts.drop(f.run.interrupts.concurrent...)
}

// fails fails the step with an error, and cancels its branches.
func (f *branches) fail(err error) {
	f.err = err
	f.cancelAll()
}

// isOverdue reports whether the step's deadline has passed.
func (f *branches) isOverdue(ctx workflow.Context) bool {
	return !f.fan.Deadline.IsZero() && !workflow.Now(ctx).Before(f.fan.Deadline)
}

// start starts a branch in the first free slot, or restarts a suspended one. interrupts are the
// decided ones of that one, resumes is its state; both are nil for a branch that begins.
func (f *branches) start(index int, interrupts *runs.Interrupts, resumes *runs.SuspendedChild) {
	r, p := f.run, branchSlot{index, f.free[0], max(f.run.log.Main, f.fan.HighestRecord)}
	f.free = f.free[1:]
	f.ids[index] = r.interpreter().branchID(f.ctx, f.fan, index)
	child := r.restartChild(f.ctx, resumes, func(ctx workflow.Context) workflow.ChildWorkflowFuture {
		return r.interpreter().startBranch(ctx, f.fan, p, interrupts, resumes, f.ctx.Err() != nil)
	})
	f.children.add(f.ctx, f.ids[index], child, f.cancel)
	f.changes.AddFuture(child, func(done workflow.Future) { f.onEnd(p, done) })
}

// await blocks until a branch ends or has interrupts, or the interrupts of one are resolved, and
// processes that. If the deadline passes while branches wait, it cancels all branches.
func (f *branches) await(ctx workflow.Context) {
	f.children.await(ctx, f.changes, f.fan.Deadline)
	if f.isOverdue(ctx) && f.children.isInterrupted() {
		f.expired = true
		f.cancelAll()
	}
	f.children.replyResolved(ctx)
}

// interruptsSoFar returns the interrupts of the branches that have ended with some.
func (f *branches) interruptsSoFar(ctx workflow.Context) *runs.Interrupts {
	interrupts := f.run.interruptsOfAnswer(ctx, runs.ModelAnswer{})
	for _, s := range f.suspended {
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
func (f *branches) onEnd(p branchSlot, done workflow.Future) {
	var answer runs.ToolAnswer
	err := done.Get(f.ctx, &answer)
	f.children.remove(f.ids[p.index], &answer)
	delete(f.ids, p.index)
	if err != nil { // the branch has no answer: the next advance reads its usage from the log
		f.free = append(f.free, p.slot)
		f.run.log.LeaveUnfinished(runs.Lane{Index: p.slot, After: p.since, Subagent: true, Branch: true})
		if temporal.IsCanceledError(err) && (f.cancelled || f.hasFailed() || f.expired) {
			f.addFailure(p.index, pipeline.Failure{Code: string(runs.OutcomeCancelled)})
		} else {
			f.fail(err)
		}
		return
	}
	f.fan.HighestRecord = max(f.fan.HighestRecord, answer.Seq)
	for _, u := range answer.Usage {
		f.run.budget.Use(u)
	}
	f.run.delegation.subagents += answer.Subagents
	if answer.Suspended != nil {
		f.suspended = append(f.suspended, answer) // it keeps its slot
		return
	}
	f.free = append(f.free, p.slot)
	slices.Sort(f.free)
	if answer.Failed == nil {
		if answer.MayNeedCompensation {
			f.fan.NoteEnd(p.index, answer.Seq)
		}
		return
	}
	f.cancelled = f.cancelled || answer.Outcome == runs.OutcomeCancelled && !f.isStopped()
	f.addFailure(p.index, *answer.Failed)
	if f.fan.StopOnFailure || f.cancelled {
		f.cancelAll()
	}
}

// addFailure adds a failed branch to the list in the position, which groups equal failures.
// Failures beyond maxReasons join the last group. Beyond maxFailures the step stops.
func (f *branches) addFailure(index int, failure pipeline.Failure) {
	if !f.hasRoomFor(failure) {
		failure.Message = ""
	}
	at := slices.IndexFunc(f.fan.Failures, func(other runs.FailureGroup) bool { return other.SameAs(failure) })
	switch {
	case at < 0 && len(f.fan.Failures) < maxReasons:
		at = len(f.fan.Failures)
		f.fan.Failures = append(f.fan.Failures, runs.FailureGroup{Failure: failure})
	case at < 0:
		at = maxReasons - 1
	}
	f.fan.Failures[at].Branches = append(f.fan.Failures[at].Branches, index)
	failed := 0
	for _, reason := range f.fan.Failures {
		failed += len(reason.Branches)
	}
	if failed > maxFailures {
		f.fan.StopOnFailure = true
	}
}

// hasRoomFor reports whether the list has room for the message of a failure, quoted as in JSON.
func (f *branches) hasRoomFor(failure pipeline.Failure) bool {
	n := len(strconv.Quote(failure.Message))
	for _, reason := range f.fan.Failures {
		if reason.SameAs(failure) {
			return true
		}
		n += len(strconv.Quote(reason.Message))
	}
	return n <= maxMessageBytes
}

// outcome returns how the step ends, when no branch is running. more reports that branches are left
// to start. If the ending is zero and more is false, outcome has set the position's event.
func (f *branches) outcome(ctx workflow.Context) (more bool, end ending) {
	r := f.run
	failed := f.hasFailed()
	switch {
	case f.cancelled || ctx.Err() != nil:
		return false, cancelledEnding
	case f.err != nil:
		return false, r.endingFromError(ctx, f.err)
	}
	if end := r.checkRunLimits(); end.isOver() {
		return false, end
	}
	switch {
	case f.isOverdue(ctx) && len(f.suspended) == 0: // with suspended branches the next run fails the step
		r.pipeline.position.Event = &pipeline.Event{Kind: pipeline.EventFailed, Failure: &timeout}
		return false, ending{}
	case len(f.suspended) > 0 && !failed:
		f.fan.Suspended = true
		interrupts := r.interruptsOfAnswer(ctx, runs.ModelAnswer{})
		for _, s := range f.suspended {
			interrupts.Adopt(*s.Suspended, s.Interrupts)
			interrupts.Notified = max(interrupts.Notified, s.Interrupts.Notified)
		}
		if !interrupts.Fits(r.in) {
			return false, tooManyInterruptsEnding
		}
		return false, withInterrupts(interrupts)
	case f.fan.Next < f.fan.Count && !failed:
		return true, ending{}
	}
	r.pipeline.position.Event = &pipeline.Event{Kind: pipeline.EventJoined}
	return false, ending{}
}

// startBranch starts the child workflow of a branch. A branch that begins gets a position of its
// own, in the step; a suspended one finds its position in resumes. cancelled starts a suspended
// branch with a cancelled run.
func (p interpreter) startBranch(ctx workflow.Context, b *runs.Branches, at branchSlot, interrupts *runs.Interrupts,
	resumes *runs.SuspendedChild, cancelled bool,
) workflow.ChildWorkflowFuture {
	info, index := workflow.GetInfo(ctx), at.index
	path := p.branchPath(b, index)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            p.branchID(ctx, b, index),
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:   true,
		WorkflowTaskTimeout:   info.WorkflowTaskTimeout,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         "branch: " + path,
	})
	in := runs.ChildInput{
		Input: runs.Input{Run: p.run.in.Run, Agent: p.run.in.Agent, Revision: p.run.in.Revision, Steps: true, Limits: p.run.in.Limits, Resume: interrupts},
		Child: runs.Child{
			BranchPath: path, Since: at.since, CallID: p.branchCallID(path), Prefix: p.run.child.prefix(), Index: index,
		},
	}
	in.Child.Compensates, in.Child.Depth, in.Hold = p.run.isCompensating(), p.run.child.depth(), true
	if in.Child.Name = path; index < len(b.Names) {
		in.Child.Name = b.Names[index]
	}
	in.Limits = p.run.budget.Remaining(p.run.in.Limits, p.run.in.Limits)
	in.Subagents = max(0, p.run.delegation.allowed-p.run.delegation.subagents) / b.Concurrency
	if p.run.child != nil {
		in.Child.ParentCallID, in.Child.Lanes = p.run.child.CallID, slices.Clone(p.run.child.Lanes)
	}
	in.Child.Lanes = append(in.Child.Lanes, at.slot)
	in.Progress = &runs.Progress{
		Execution: p.run.execution, Turn: 1, Cancelled: cancelled && resumes != nil,
		Budget: runs.Budget{Deadline: runs.Earlier(b.Deadline, p.run.budget.Deadline)},
	}
	if resumes == nil {
		w := runs.PipelinePosition{
			Number: p.position.Number, Tree: p.position.Tree, Origin: p.position.Origin, Input: p.position.Input,
			Child: p.position.Child, Event: &pipeline.Event{Kind: pipeline.EventBegun},
		}
		w.At.Home, w.At.Branch = p.position.At.Home, p.position.At.Into(b.Path, index)
		w.Items = append(slices.Clone(p.position.Items), b.Record)
		in.Progress.Position = &w
	}
	return workflow.ExecuteChildWorkflow(ctx, runs.TypeChild, in)
}

// branchPath returns the path of a branch, which is unique in the run.
func (p interpreter) branchPath(b *runs.Branches, index int) string {
	return fmt.Sprintf("%s%s/%d", p.position.Prefix(), b.Path, index)
}

// branchID returns the workflow ID of a branch: that of the parent workflow, followed by the path.
// In the thread's own workflow a digest of the run ID comes between them, because a thread's runs
// share its workflow ID.
func (p interpreter) branchID(ctx workflow.Context, b *runs.Branches, index int) string {
	info, path := workflow.GetInfo(ctx), p.branchPath(b, index)
	if within := p.run.child.branchPrefix(); within != "" {
		return info.WorkflowExecution.ID + "/" + strings.TrimPrefix(path, within)
	}
	return fmt.Sprintf("%s/%s/%s", info.WorkflowExecution.ID, shortDigest(p.run.in.Run.ID), path)
}

// branchCallID returns the ID by which the log and clients know a branch. It derives from the run
// that began the pipeline, so it is the same in all runs in which the pipeline continues.
func (p interpreter) branchCallID(path string) string {
	return "call_" + shortDigest(p.position.Origin+"\n"+p.run.child.prefix()+path)
}

// shortDigest returns 80 bits of a SHA-256, in hexadecimal.
func shortDigest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:10])
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
		if err := r.interpreter().suspendSteps(ctx, end.interrupts); err != nil {
			return runs.ToolAnswer{}, err
		}
		answer.Interrupts, answer.Suspended = end.interrupts, r.suspendedChild(end.interrupts)
		answer.Suspended.Branch = &r.child.Index
	case end.outcome != runs.OutcomeSuccess:
		failure := end.failure()
		failure.Code = cmp.Or(end.code, string(end.outcome))
		answer.Failed = &failure
	default:
		answer.MayNeedCompensation = len(r.pipeline.position.At.Undo) > 0
	}
	answer.Seq = r.log.Main
	return answer, nil
}

// suspendSteps closes the open steps of a child in the log, because it ends with interrupts. The
// run that restarts the child reopens them.
func (p interpreter) suspendSteps(ctx workflow.Context, interrupts *runs.Interrupts) error {
	in := runs.AdvanceInput{Step: p.run.ownStep("suspend"), Position: *p.position}
	in.Suspended, _ = interrupts.Open()
	var done runs.AdvanceResult
	return p.runAdvance(ctx, in, &done)
}
