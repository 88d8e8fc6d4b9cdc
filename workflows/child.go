package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A subagent works for one tool call of another agent. It is a child workflow with turns of its own, and lanes of its own in
// the run's log. It ends with the result of the call, so the agent that made the call sees a tool like any other. Clients
// talk to the thread only. A cancel reaches the subagent as a child of the cancelled workflow.

// child is what a subagent or branch has besides its run; nil = the run is a thread's own.
type child struct {
	runs.Child
	call    runs.ToolCall // that a subagent works for
	replies int           // replies from the parent that have arrived
}

// branch returns the child's place for its activities; nil = the run is a thread's own.
func (c *child) branch() *runs.Child {
	if c == nil {
		return nil
	}
	return &c.Child
}

// depth returns how many agents have handed on the work that arrived here.
func (c *child) depth() int {
	if c == nil {
		return 0
	}
	return c.Depth
}

// prefix begins the ids of the child's steps, which are unique in the run.
func (c *child) prefix() string {
	if c == nil {
		return ""
	}
	return c.Prefix
}

// branchPrefix begins the ids of steps that are a branch's own.
func (c *child) branchPrefix() string {
	if c == nil || c.BranchPath == "" {
		return ""
	}
	return c.BranchPath + "/"
}

// AgentBranch is agent.child.v1: a subagent or a branch at work.
func (p Programs) AgentBranch(ctx workflow.Context, in runs.ChildInput) (runs.ToolAnswer, error) {
	r := newRun(ctx, in.Input)
	r.programs, r.executionCtx = p, ctx
	r.child, r.delegation.allowed = &child{Child: in.Child, call: in.Call}, in.Subagents
	if in.Progress != nil {
		r.child.replies = in.Progress.Replies
	}
	if in.Progress != nil && in.Progress.Cancelled { // it has only to compensate for what it has done
		var cancel workflow.CancelFunc
		ctx, cancel = workflow.WithCancel(ctx)
		cancel()
	}
	if in.Child.BranchPath != "" {
		return r.runBranch(ctx)
	}
	end, err := r.turns(ctx)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if end.waits != nil && r.pipeline.position != nil {
		if err := r.pipeline.suspendSteps(ctx, end.waits); err != nil {
			return runs.ToolAnswer{}, err
		}
	}
	answer, err := r.answerCall(ctx, end)
	if end.waits != nil && err == nil {
		answer.Interrupts, answer.Suspended = end.waits, r.suspendedChild(end.waits)
	}
	return answer, err
}

// answerCall writes the result of the call that the subagent worked for, also when the run is cancelled.
func (r *run) answerCall(ctx workflow.Context, end ending) (runs.ToolAnswer, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in := runs.SubagentAnswer{
		Step: r.step(r.turn, "answer", ""), Call: r.child.call, Outcome: end.outcome, Code: end.code, Message: end.message,
		MessageID: r.answerMessage, Unfinished: r.log.Unfinished, Usage: r.budget.Usage, Subagents: r.delegation.subagents, IsPipeline: r.pipeline.position != nil || r.in.Program != "",
	}
	if end.waits != nil {
		in.Interrupts = end.waits.OpenQuestions()
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: heartbeatTimeout, Summary: "answer",
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	})
	var answer runs.ToolAnswer
	err := workflow.ExecuteActivity(ctx, runs.ActivityAnswerCall, in).Get(ctx, &answer)
	return answer, err
}

// shareSubagents divides the subagents that may still start among the calls of a turn that hand work on. ok is false if there
// are too few for these calls.
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

// isForSubagent reports whether the call starts a subagent.
func (c call) isForSubagent() bool {
	return c.delegate != nil && c.isMade()
}

// isMade reports whether the call is made, as opposed to answered without.
func (c call) isMade() bool { return c.decision == nil || c.decision.Approves() }

// startSubagent starts the subagent for a call, and returns its workflow ID.
func (r *run) startSubagent(ctx workflow.Context, c call, call runs.ToolCall, subagents int, cancelled bool) (id string, child workflow.ChildWorkflowFuture) {
	to := *c.delegate
	info, sum := workflow.GetInfo(ctx), sha256.Sum256([]byte(r.in.Run.ID))
	run := hex.EncodeToString(sum[:8])
	id = fmt.Sprintf("%s/%s/%s", info.WorkflowExecution.ID, run, strings.TrimPrefix(call.ID, r.child.prefix()))
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:   true,
		WorkflowTaskTimeout:   info.WorkflowTaskTimeout,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         "agent: " + to.Agent,
	})
	limits := r.budget.Remaining(r.in.Limits, to.Limits)
	deadline := workflow.Now(ctx).Add(limits.Duration)
	if r.budget.Deadline.Before(deadline) {
		deadline = r.budget.Deadline
	}
	branch := runs.Child{Since: max(call.After, call.LaneAfter), CallID: call.CallID, MessageID: call.MessageID, Index: c.index, Prefix: call.ID + "/", Compensates: r.isCompensating()}
	if d := call.Decision; d != nil {
		branch.Args = d.Args
		if d.Kind == runs.DecisionEdit {
			branch.Edit = d.Input
		}
	}
	progress := &runs.Progress{Execution: r.execution, Turn: 1, Budget: runs.Budget{Deadline: deadline}}
	if c.resumes != nil {
		branch.Args, branch.Edit, progress.Turn = c.resumes.Args, c.resumes.Edit, c.resumes.Turn+1
		progress.Spent.Turns, progress.Cancelled = c.resumes.Turn, cancelled
	}
	if r.child != nil {
		branch.Lanes = append(branch.Lanes, r.child.Lanes...)
	}
	branch.Lanes, branch.Depth = append(branch.Lanes, call.Lane), r.child.depth()+1
	return id, workflow.ExecuteChildWorkflow(ctx, runs.TypeChild, runs.ChildInput{
		Input: runs.Input{
			Run: r.in.Run, Agent: to.Agent, Revision: to.Revision, Limits: limits,
			Steps: to.Steps, Program: to.Program, Hold: true, Resume: c.waits, Progress: progress,
		},
		Child: branch, Call: call, Subagents: subagents,
	})
}
