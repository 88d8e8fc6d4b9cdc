package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// answerCall writes the result of the call that the subagent worked for (subagent.answer), also
// when the run is cancelled. For a subagent that ends with interrupts it writes the end of the
// subagent without a result. It retries without limit: the caller's lane stays open until then.
func (r *run) answerCall(ctx workflow.Context, end ending) (runs.ToolAnswer, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in := runs.SubagentAnswer{
		Step: r.step(r.turn, "answer", ""), Call: r.child.call, Outcome: end.outcome, Code: end.code, Message: end.message,
		MessageID: r.answerMessage, Unfinished: r.log.Unfinished, Usage: r.budget.Usage, Subagents: r.delegation.subagents, IsPipeline: r.pipeline.position != nil || r.in.Program != "",
		Result: r.resultOf(end),
	}
	if end.interrupts != nil {
		in.Interrupts = end.interrupts.OpenNames()
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: heartbeatTimeout, Summary: "answer",
		RetryPolicy: retryPolicy(0),
	})
	var answer runs.ToolAnswer
	err := workflow.ExecuteActivity(ctx, runs.ActivityAnswerSubagent, in).Get(ctx, &answer)
	return answer, err
}

// shareSubagents divides the subagents that may still start among the subagents of a turn. share is
// how many each of them may start itself. ok is false if too few are left for the turn's own.
func (r *run) shareSubagents(calls []call) (share int, ok bool) {
	n := 0
	for _, c := range calls {
		if c.isForSubagent() {
			n++
		}
	}
	left := r.delegation.allowed - r.delegation.subagents - n
	if n == 0 {
		return 0, true
	}
	return max(left, 0) / n, left >= 0
}

// isForSubagent reports whether the call starts a subagent. A rejected or answered call does not.
func (c call) isForSubagent() bool {
	return c.subagent != nil && c.isMade()
}

// isMade reports whether the call is made. Otherwise its decision is the result.
func (c call) isMade() bool { return c.decision == nil || c.decision.Approves() }

// startSubagent starts the child workflow of the subagent for a call, and returns its workflow ID,
// which is unique in the run. limits are those of this execution of the subagent, and subagents is
// how many it may start itself. A suspended subagent continues with its arguments and its turn;
// cancelled makes it begin as cancelled.
func (r *run) startSubagent(ctx workflow.Context, c call, request runs.ToolCall, limits runs.Limits, subagents int, cancelled bool) (id string, child workflow.ChildWorkflowFuture) {
	to := *c.subagent
	info := workflow.GetInfo(ctx)
	id = fmt.Sprintf("%s/%s/%s", info.WorkflowExecution.ID, digest(8, r.in.Run.ID), strings.TrimPrefix(request.ID, r.child.prefix()))
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:   true,
		WorkflowTaskTimeout:   info.WorkflowTaskTimeout,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         "agent: " + to.Agent,
	})
	to.Limits = limits
	deadline := workflow.Now(ctx).Add(to.Limits.Duration)
	if r.budget.Deadline.Before(deadline) {
		deadline = r.budget.Deadline
	}
	subagent := runs.Child{
		Since: max(request.After, request.LaneAfter), CallID: request.CallID, MessageID: request.MessageID,
		Index: c.index, Prefix: request.ID + "/", Compensates: r.isCompensating(), Hidden: request.IsHidden(),
	}
	if d := request.Decision; d != nil {
		subagent.Args = d.ArgsDigest
		if d.Kind == runs.DecisionEdit {
			subagent.Edit = d.Proposal
		}
	}
	progress := &runs.Progress{Execution: r.execution, Turn: 1, Budget: runs.Budget{Deadline: deadline}}
	if c.resumes != nil {
		subagent.Args, subagent.Edit, progress.Turn = c.resumes.Args, c.resumes.Edit, c.resumes.Turn+1
		progress.Spent.Turns, progress.Cancelled = c.resumes.Turn, cancelled
	}
	if r.child != nil {
		subagent.Lanes = append(subagent.Lanes, r.child.Lanes...)
	}
	subagent.Lanes, subagent.Depth = append(subagent.Lanes, request.Lane), r.child.depth()+1
	return id, workflow.ExecuteChildWorkflow(ctx, runs.TypeChild, runs.ChildInput{
		Input: runs.Input{
			Run: r.in.Run, AgentRef: to, Hold: true,
			Continuation: runs.Continuation{Resume: c.interrupts, Progress: progress},
		},
		Child: subagent, Call: request, Subagents: subagents,
	})
}
