package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A suspended child has ended with its interrupts, and has no workflow. Its interrupts are
// interrupts of the run, like those of the run's own agent. When all are decided, the next run
// restarts the child from its state.

// suspendedChild returns the state of this subagent or branch, from which the next run restarts it.
// set has the interrupts with which it ends.
func (r *run) suspendedChild(set *runs.Interrupts) *runs.SuspendedChild {
	return &runs.SuspendedChild{
		AgentRef: runs.AgentRef{Agent: r.in.Agent, Revision: r.in.Revision, Limits: r.in.Limits, Steps: r.in.Steps},
		CallID:   r.child.CallID, MessageID: r.child.MessageID, Index: r.child.Index, Args: r.child.Args, Edit: r.child.Edit,
		Turn: r.turn, AnswerID: set.MessageID, Subagents: set.Subagents, Position: r.pipeline.position, Step: set.Step, Tree: set.Tree,
	}
}

// startOrRestartChild starts a child that begins (resumes is nil), or restarts a suspended one. A
// suspended one starts also in a cancelled run, because only the child knows what it has done and
// has to undo. The cancel reaches it after it has started: a child that is cancelled before that
// would never run.
func (r *run) startOrRestartChild(ctx workflow.Context, resumes *runs.SuspendedChild, start func(workflow.Context) workflow.ChildWorkflowFuture) workflow.ChildWorkflowFuture {
	if resumes == nil {
		return start(ctx)
	}
	disconnected, cancel := workflow.NewDisconnectedContext(ctx)
	child := start(disconnected)
	workflow.Go(disconnected, func(disconnected workflow.Context) {
		_ = child.GetChildWorkflowExecution().Get(disconnected, nil)
		ctx.Done().Receive(disconnected, nil)
		cancel()
	})
	return child
}

// suspendedSize returns how many bytes this subagent's state takes in a payload, if it is suspended
// with the children in set. A state that cannot be encoded counts as MaxPayload, so it does not
// fit.
func (r *run) suspendedSize(set *runs.Interrupts) int {
	s := r.suspendedChild(set)
	if r.child.BranchPath != "" {
		s.Branch = &r.child.Index
	}
	body, err := runs.Encode(s) //workflowcheck:ignore the same value gives the same text
	if err != nil {
		return runs.MaxPayload
	}
	return len(body)
}

// resumedCalls returns the calls for which suspended subagents of the run's own agent continue to
// work. Deeper children restart below their parents.
func resumedCalls(set *runs.Interrupts) []call {
	var calls []call
	for i := range set.Suspended {
		if s := &set.Suspended[i]; s.Parent == 0 && s.Branch == nil {
			calls = append(calls, call{index: s.Index, id: s.CallID, tool: s.Agent, subagent: &s.AgentRef, resumes: s, interrupts: set.OfChild(i + 1)})
		}
	}
	return calls
}

// abortSuspension continues the run when no child ends with interrupts: interrupts of children that
// have ended are cancelled, and the thread takes decisions again.
func (r *run) abortSuspension(ctx workflow.Context) {
	if r.thread != nil {
		r.thread.closeSuspended(ctx, false)
		r.thread.allowDecisions(ctx)
	}
}
