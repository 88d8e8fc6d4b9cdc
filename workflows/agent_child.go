package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// AgentChild is agent.child.v1: the work of a subagent for a tool call, or of a branch of a
// pipeline. It ends with the call's or branch's answer. If the answer has Suspended set, the child
// waits for interrupts, and the run that has the decisions starts it again from that state.
//
// Cancellation reaches it as a child workflow. A child whose input is cancelled already
// (Progress.Cancelled) starts with a cancelled context: it only compensates for what it has done.
func (p Programs) AgentChild(ctx workflow.Context, in runs.ChildInput) (runs.ToolAnswer, error) {
	r := newRun(ctx, in.Input)
	r.program, r.executionCtx = p.programOf(r, nil), ctx
	r.child, r.delegation.allowed = &child{Child: in.Child, call: in.Call}, in.Subagents
	if in.Progress != nil {
		r.child.replies = in.Progress.Replies
	}
	if in.Progress != nil && in.Progress.Cancelled { // compensate only
		var cancel workflow.CancelFunc
		ctx, cancel = workflow.WithCancel(ctx)
		cancel()
	}
	if in.Child.BranchPath != "" {
		return r.runBranch(ctx)
	}
	end, err := r.runTurns(ctx)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if end.interrupts != nil && r.pipeline.position != nil {
		if err := r.executor().suspendSteps(ctx, end.interrupts); err != nil {
			return runs.ToolAnswer{}, err
		}
	}
	answer, err := r.answerCall(ctx, end)
	if end.interrupts != nil && err == nil {
		answer.Interrupts, answer.Suspended = end.interrupts, r.suspendedChild(end.interrupts)
	}
	return answer, err
}
