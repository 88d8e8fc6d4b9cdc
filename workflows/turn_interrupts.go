package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// interruptsOfAnswer returns the interrupts among the calls of an answer, and the questions of a remote
// agent, for the active agent.
// Without such calls the result has no Items; callers add the interrupts of children and questions
// of tools to it.
func (r *run) interruptsOfAnswer(ctx workflow.Context, a runs.ModelAnswer) *runs.Interrupts {
	by, now := r.activeAgent(), workflow.Now(ctx)
	set := &runs.Interrupts{
		MessageID: a.MessageID, Subagents: a.Subagents, Handoff: a.Handoff, RunID: r.in.Run.ID,
		Agent: by.Agent, Revision: by.Revision, Position: r.pipeline.position, OpenedAt: now,
	}
	if active := r.activeStep(); active != nil && active.PipelineStep.Inline {
		set.Step, set.Tree = active.PipelineStep.Path, active.PipelineStep.Tree
	}
	set.Spent = r.budget.Carried(r.in.Limits, now)
	for i, c := range a.Calls {
		if !c.IsInterrupt() {
			continue
		}
		waiting := runs.Interrupt{Call: c, Index: i}
		if c.Approval != nil {
			waiting.Expires = r.expiry(now, c.Approval.Expires)
		}
		set.Items = append(set.Items, waiting)
	}
	for i, q := range a.Questions {
		waiting := runs.Interrupt{
			Call: runs.Call{ID: q.CallID, Approval: q.Approval}, Index: a.Count() + i, // an index of its own: it names the step that records the decision
			Question: &runs.Question{Seq: a.Seq, Number: q.Number, Remote: true}, Expires: r.expiry(now, q.Expires),
		}
		if q.Approval != nil {
			waiting.Expires = runs.Earlier(waiting.Expires, r.expiry(now, q.Approval.Expires))
		}
		set.Items = append(set.Items, waiting)
	}
	return set
}

// expiry returns when an interrupt that opens now expires; zero = never. after is the time that the
// approval rule or the tool gives; 0 = without limit. The active step's deadline limits it.
func (r *run) expiry(now time.Time, after time.Duration) (at time.Time) {
	if after > 0 {
		at = now.Add(after)
	}
	if active := r.activeStep(); active != nil {
		at = runs.Earlier(at, active.Deadline)
	}
	return at
}

// decidedCalls returns the calls to make or to answer after the decisions, and those of suspended
// subagents. It leaves out client tool calls that the client has abandoned, or whose results came
// with its input and do not change the state: no activity has to write these. It also leaves out
// the handoff, calls of suspended children, and in a cancelled run calls without a decision.
func decidedCalls(set *runs.Interrupts) []call {
	var calls []call
	for _, item := range set.Items {
		d := item.Decision
		if d == nil || item.Child > 0 || set.Handoff.Is(item.Index) || d.Kind == runs.DecisionAbandon {
			continue
		}
		if d.Kind == runs.DecisionToolResult && d.Proposal == 0 && !item.ChangesState {
			continue
		}
		calls = append(calls, decidedCall(item, set.Subagents))
	}
	return append(calls, resumedCalls(set)...)
}

// decidedCall returns the call of an interrupt, with its decision. The interrupt must be decided.
func decidedCall(item runs.Interrupt, subagents []runs.AgentRef) call {
	d := item.Decision
	next := call{
		index: item.Index, id: item.ID, tool: item.Tool, queue: item.Queue, sequence: item.Sequence,
		decision: d, votes: item.DecidingVotes(), subagent: item.Agent(subagents), answeredQuestion: item.Question,
		forClient: item.ForClient,
	}
	if d.Kind == runs.DecisionExpire && item.Approval != nil {
		next.onExpiry = item.Approval.OnExpiry
	}
	if d.Remember != "" {
		next.remember = item.Approval.RuleDigest
	}
	return next
}

// interruptsOf returns the interrupts that a decision about a call is for; nil = none. A cancelled
// run takes no decisions, unless it compensates.
func (r *run) interruptsOf(callID string) *runs.Interrupts {
	return r.interrupts.find(callID, r.in.Resume, r.isCancelled() && !r.isCompensating())
}
