package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A subagent that waits for people ends: it has no workflow meanwhile. What it waits for is a question of the
// run, like those of the run's own agent, and goes the same way. When all is decided the next run begins
// the subagent again where it was, as the work for the same call.

// suspendedChild is this subagent as it waits.
func (r *run) suspendedChild(w *runs.Interrupts) *runs.SuspendedChild {
	return &runs.SuspendedChild{
		AgentRef: runs.AgentRef{Agent: r.in.Agent, Revision: r.in.Revision, Limits: r.in.Limits, Steps: r.in.Steps},
		CallID:   r.child.CallID, MessageID: r.child.MessageID, Index: r.child.Index, Args: r.child.Args, Edit: r.child.Edit,
		Turn: r.turn, AnswerID: w.MessageID, Subagents: w.Subagents, Position: r.pipeline.position, Step: w.Step, Tree: w.Tree,
	}
}

// restartChild starts a subagent, also when the run is cancelled if it was suspended: what it has done is known to nobody else, and
// it compensates for it. The cancel reaches it when it has begun.
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

// suspendedSize is how many bytes this subagent takes as it waits for what those below it ask.
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

// resumedCalls are the calls for which suspended subagents go on to work.
func resumedCalls(w *runs.Interrupts) []call {
	var calls []call
	for i := range w.Suspended {
		if s := &w.Suspended[i]; s.Parent == 0 && s.Branch == nil {
			calls = append(calls, call{index: s.Index, id: s.CallID, tool: s.Agent, delegate: &s.AgentRef, resumes: s, waits: w.Of(i + 1)})
		}
	}
	return calls
}
