package narration

import (
	"slices"

	"github.com/perdure/perdure/runs"
)

// This file recognizes calls that the workflow does not make by an activity: calls of subagents and
// handoffs.

// markSubagent marks a call of a subagent for the workflow, with an index into Answer.Subagents
// from 1. A call with invalid arguments, or of one agent more than runs.MaxSubagentsPerTurn, is not
// marked: CallTool then writes a result that says what is wrong.
func (n *Narrator) markSubagent(c *toolCall, call *runs.Call) {
	i := slices.IndexFunc(n.Subagents, func(d Subagent) bool { return d.Agent == c.name })
	if i < 0 || call.Client {
		return
	}
	if _, err := TaskOf(c.arguments.String()); err != nil {
		return
	}
	to := n.Subagents[i].AgentRef
	// Calls of the same agent share an entry.
	at := slices.Index(n.Answer.Subagents, to)
	if at < 0 && len(n.Answer.Subagents) < runs.MaxSubagentsPerTurn {
		at, n.Answer.Subagents = len(n.Answer.Subagents), append(n.Answer.Subagents, to)
	}
	call.Subagent = at + 1
}

// markHandoff notes the call that hands the thread over, if it is the first valid one of the turn
// and the agent can take over. index is the index of the call in the message. Other handoffs get a
// result that says what is wrong.
func (n *Narrator) markHandoff(c *toolCall, call runs.Call, index int) {
	i := slices.IndexFunc(n.Handoffs, func(t Handoff) bool { return t.Tool == c.name })
	if i < 0 || call.Client || n.Answer.Handoff != nil || !n.Handoffs[i].Able || CheckHandoff(c.arguments.String()) != "" {
		return
	}
	n.Answer.Handoff = &runs.Handoff{CallID: c.id, Tool: call.Tool, Index: index, To: n.Handoffs[i].HandoffTarget}
}
