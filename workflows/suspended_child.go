package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A suspended child has ended with its interrupts, and has no workflow. They are interrupts of the
// run, like those of its own agent. When all are decided, the next run starts the child again where
// it was.

// suspendedChild returns the state of this subagent or branch, from which it can begin again.
func (r *run) suspendedChild(w *runs.Interrupts) *runs.SuspendedChild {
	return &runs.SuspendedChild{
		AgentRef: runs.AgentRef{Agent: r.in.Agent, Revision: r.in.Revision, Limits: r.in.Limits, Steps: r.in.Steps},
		CallID:   r.child.CallID, MessageID: r.child.MessageID, Index: r.child.Index, Args: r.child.Args, Edit: r.child.Edit,
		Turn: r.turn, AnswerID: w.MessageID, Subagents: w.Subagents, Position: r.pipeline.position, Step: w.Step, Tree: w.Tree,
	}
}

// restartChild starts a child. One that was suspended starts also when the run is cancelled,
// because only it knows what it has done and has to undo; the cancel reaches it when it has
// started.
func (r *run) restartChild(ctx workflow.Context, resumes *runs.SuspendedChild, start func(workflow.Context) workflow.ChildWorkflowFuture) workflow.ChildWorkflowFuture {
	if resumes == nil {
		return start(ctx)
	}
	lasting, cancel := workflow.NewDisconnectedContext(ctx)
	child := start(lasting)
	workflow.Go(lasting, func(lasting workflow.Context) {
		_ = child.GetChildWorkflowExecution().Get(lasting, nil)
		ctx.Done().Receive(lasting, nil)
		cancel()
	})
	return child
}

// suspendedSize returns how many bytes this subagent's state takes in a payload, if those below it
// are suspended.
func (r *run) suspendedSize(w *runs.Interrupts) int {
	s := r.suspendedChild(w)
	if r.child.BranchPath != "" {
		s.Branch = &r.child.Index
	}
	body, err := runs.Encode(s) //workflowcheck:ignore the same value gives the same text
	if err != nil {
		return runs.MaxPayload
	}
	return len(body)
}

// resumedCalls returns the calls for which suspended subagents continue to work.
func resumedCalls(w *runs.Interrupts) []call {
	var calls []call
	for i := range w.Suspended {
		if s := &w.Suspended[i]; s.Parent == 0 && s.Branch == nil {
			calls = append(calls, call{index: s.Index, id: s.CallID, tool: s.Agent, delegate: &s.AgentRef, resumes: s, waits: w.Of(i + 1)})
		}
	}
	return calls
}
