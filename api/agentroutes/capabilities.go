package agentroutes

import (
	"encoding/json"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
)

// yes and no are values to point to: in AG-UI's capabilities a nil pointer means unknown.
var yes, no = true, false

// capabilities returns AG-UI's capabilities of an agent, with its subagents and how it involves
// people. A member that is nil is unknown, not absent: the API cannot ask the model or the workers'
// tools.
func capabilities(p catalog.Published, subagents []agui.SubagentInfo, i involvement) agui.AgentCapabilities {
	_, fromClients := agents.SplitTools(p.Tools)
	clients := len(fromClients) > 0 || p.Remote != nil && p.Remote.Forward.HasTools()
	hasTools := len(p.Tools) > 0 || clients
	delegation, handsOver := len(subagents) > 0, len(agents.Handoffs(p.Tools)) > 0
	several := delegation || handsOver
	hasOutput := p.Output != nil
	parallel := hasTools && p.Limits.ParallelTools > 1
	return agui.AgentCapabilities{
		Identity: &agui.IdentityCapabilities{
			Name: p.Name, Type: "perdure", Description: p.Description,
			Metadata: agui.Metadata{"perdure.revision": revision(p)}, // a revision is no semantic version
		},
		Transport: &agui.TransportCapabilities{Streaming: &yes, WebSocket: &yes, HTTPBinary: &yes, PushNotifications: &no, Resumable: &yes},
		Tools:     &agui.ToolsCapabilities{Supported: &hasTools, ParallelCalls: &parallel, ClientProvided: &clients},
		Output:    &agui.OutputCapabilities{StructuredOutput: &hasOutput},
		State:     &agui.StateCapabilities{PersistentState: &yes, Snapshots: &yes, Deltas: mayHaveDeltas(p)},
		// The media that a model reads, and whether it reasons, are unknown here.
		Multimodal:     &agui.MultimodalCapabilities{Input: &agui.MultimodalInput{File: &no}},
		MultiAgent:     &agui.MultiAgentCapabilities{Supported: &several, Delegation: &delegation, Handoffs: &handsOver, Subagents: subagents},
		Execution:      &agui.ExecutionCapabilities{CodeExecution: &no, MaxIterations: maxIterations(p), MaxExecutionTime: maxExecutionTime(p)},
		HumanInTheLoop: &agui.HumanInTheLoopCapabilities{Approvals: &i.hasApprovals, Feedback: &no, Interrupts: i.interrupts(), ApproveWithEdits: &i.hasApprovals},
	}
}

// revision returns a revision as JSON.
func revision(p catalog.Published) json.RawMessage {
	text, err := json.Marshal(p.Revision)
	if err != nil { // a string can always be encoded
		return nil
	}
	return text
}

// mayHaveDeltas reports whether runs of the agent may send state deltas; nil = unknown. Deltas come
// from the definition, from tools, whose behavior only workers know, and from remote agents. Otherwise
// there are none.
func mayHaveDeltas(p catalog.Published) *bool {
	switch {
	case len(p.State.Predict) > 0, len(p.State.Results) > 0, len(p.State.Write) > 0:
		return &yes
	case len(p.Tools) == 0 && p.Remote == nil:
		return &no
	}
	return nil
}

// maxIterations returns the limit of turns.
func maxIterations(p catalog.Published) *int64 {
	n := int64(p.Limits.Turns)
	return &n
}

// maxExecutionTime returns the limit of a run's duration, in milliseconds as AG-UI has it.
func maxExecutionTime(p catalog.Published) *int64 {
	ms := p.Limits.Duration.Milliseconds()
	return &ms
}
