package narration

import (
	"slices"

	"github.com/perdure/perdure/runs"
)

// handOver tells the workflow that a call gives an agent a task.
func (n *Narrator) handOver(c *toolCall, call *runs.Call) {
	i := slices.IndexFunc(n.Delegates, func(d Delegate) bool { return d.Agent == c.name })
	if i < 0 || call.Client {
		return
	}
	if _, err := TaskOf(c.arguments.String()); err != nil {
		return // the result of the call tells the model what is wrong
	}
	to := n.Delegates[i].AgentRef
	at := slices.Index(n.Answer.Subagents, to)
	if at < 0 && len(n.Answer.Subagents) < runs.MaxSubagentsPerTurn {
		at, n.Answer.Subagents = len(n.Answer.Subagents), append(n.Answer.Subagents, to)
	}
	call.Subagent = at + 1
}

// yield tells the workflow that a call hands over the thread, if it is the first such call of the
// turn. index is its index in the message.
func (n *Narrator) yield(c *toolCall, call runs.Call, index int) {
	i := slices.IndexFunc(n.Handoffs, func(t Handoff) bool { return t.Tool == c.name })
	if i < 0 || call.Client || n.Answer.Handoff != nil || !n.Handoffs[i].Able || CheckHandoff(c.arguments.String()) != "" {
		return // the result of an invalid handoff tells the model what is wrong
	}
	n.Answer.Handoff = &runs.Handoff{CallID: c.id, Tool: call.Tool, Index: index, To: n.Handoffs[i].HandoffTarget}
}
