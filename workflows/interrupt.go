package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// interruptsOfAnswer returns the interrupts among the calls of an answer, for the active agent.
// Without such calls the result has no Calls; callers add the interrupts of children and questions
// of tools to it.
func (r *run) interruptsOfAnswer(ctx workflow.Context, a runs.ModelAnswer) *runs.Interrupts {
	by, now := r.activeAgent(), workflow.Now(ctx)
	w := &runs.Interrupts{MessageID: a.MessageID, Subagents: a.Subagents, Handoff: a.Handoff, RunID: r.in.Run.ID, Agent: by.Agent, Revision: by.Revision, Position: r.pipeline.position, Opened: now}
	if l := r.activeStep(); l != nil && l.Place.Inline {
		w.Step, w.Tree = l.Place.Path, l.Place.Tree
	}
	w.Spent = r.budget.Carried(r.in.Limits, now)
	for i, c := range a.Calls {
		if !c.IsInterrupt() {
			continue
		}
		waiting := runs.Interrupt{Call: c, Index: i}
		if c.Approval != nil {
			waiting.Expires = r.expiry(now, c.Approval.Expires)
		}
		w.Items = append(w.Items, waiting)
	}
	return w
}

// expiry returns when an interrupt that opens now expires; zero = never. after is the time that the
// approval rule or the tool gives; 0 = without limit. The active step's deadline limits it.
func (r *run) expiry(now time.Time, after time.Duration) (at time.Time) {
	if after > 0 {
		at = now.Add(after)
	}
	if l := r.activeStep(); l != nil {
		at = runs.Earlier(at, l.Deadline)
	}
	return at
}

// decidedCalls returns the calls to make or to answer after the decisions, and those of suspended
// subagents. It leaves out client tool calls that the client has abandoned or whose results came
// with its input: no activity has to write these. It also leaves out the handoff, calls of
// suspended children, and in a cancelled run calls without a decision.
func decidedCalls(w *runs.Interrupts) []call {
	var calls []call
	for _, c := range w.Items {
		d := c.Decision
		if d == nil || c.Child > 0 || w.Handoff.Is(c.Index) || d.Kind == runs.DecisionAbandon || d.Kind == runs.DecisionToolResult && d.Input == 0 {
			continue
		}
		calls = append(calls, decidedCall(c, w.Subagents))
	}
	return append(calls, resumedCalls(w)...)
}

// decidedCall returns the call of an interrupt, with its decision. The interrupt must be decided.
func decidedCall(c runs.Interrupt, delegates []runs.AgentRef) call {
	d := c.Decision
	next := call{
		index: c.Index, id: c.ID, tool: c.Tool, queue: c.Queue, sequence: c.Sequence,
		decision: d, votes: c.DecidingVotes(), subagent: c.Agent(delegates), raised: c.Asked,
	}
	if d.Kind == runs.DecisionExpire && c.Approval != nil {
		next.onExpiry = c.Approval.OnExpiry
	}
	if d.Remember != "" {
		next.remember = c.Approval.Policy
	}
	return next
}
