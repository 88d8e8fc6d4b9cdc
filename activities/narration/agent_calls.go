package narration

import (
	"slices"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file recognizes calls that the workflow does not make by an activity: calls of subagents and
// handoffs.

// markSubagent marks a call of a subagent for the workflow, with an index into Answer.Subagents
// from 1. A call with invalid arguments, or of one agent more than runs.MaxSubagentsPerTurn, is not
// marked: CallTool then writes a result that says what is wrong.
func (n *Narrator) markSubagent(written *toolCall, call *runs.Call) {
	i := slices.IndexFunc(n.Subagents, func(d Subagent) bool { return d.Agent == written.name })
	if i < 0 || call.Client {
		return
	}
	if _, err := TaskOf(written.arguments.String()); err != nil {
		return
	}
	agent := n.Subagents[i].AgentRef
	// Calls of the same agent share an entry.
	index := slices.Index(n.Answer.Subagents, agent)
	if index < 0 && len(n.Answer.Subagents) < runs.MaxSubagentsPerTurn {
		index, n.Answer.Subagents = len(n.Answer.Subagents), append(n.Answer.Subagents, agent)
	}
	call.Subagent = index + 1
}

// markHandoff notes the call that hands the thread over, if it is the first valid one of the turn
// and the agent can take over. index is the index of the call in the message. Other handoffs get a
// result that says what is wrong.
func (n *Narrator) markHandoff(written *toolCall, call runs.Call, index int) {
	i := slices.IndexFunc(n.Handoffs, func(t Handoff) bool { return t.Tool == written.name })
	if i < 0 || call.Client || n.Answer.Handoff != nil || !n.Handoffs[i].CanTakeOver || CheckHandoff(written.arguments.String()) != "" {
		return
	}
	n.Answer.Handoff = &runs.Handoff{CallID: written.id, Tool: call.Tool, Index: index, To: n.Handoffs[i].HandoffTarget}
}

// tenantAgents returns the agents of the tenant to which the calls hand work, or the thread.
func (n *Narrator) tenantAgents() (all []stream.AgentRevision) {
	refs := n.Answer.Subagents
	if n.Answer.Handoff != nil {
		refs = append(slices.Clip(refs), n.Answer.Handoff.To.AgentRef)
	}
	for _, ref := range refs {
		if stream.IsTenantRevision(ref.Revision) {
			all = append(all, stream.AgentRevision{Agent: ref.Agent, Revision: ref.Revision})
		}
	}
	return all
}
