package agentroutes

import (
	"encoding/json"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
)

var yes, no = true, false

// capabilities declares the capabilities of an agent with these subagents and handoffs, which
// involves people in this way. An omitted member is unknown, not absent.
func capabilities(p catalog.Published, subagents []agui.SubagentInfo, h people) agui.AgentCapabilities {
	hasTools := len(p.Tools) > 0
	_, fromClients := agents.SplitTools(p.Tools)
	clients := len(fromClients) > 0
	delegates, handsOver := len(subagents) > 0, len(agents.Handoffs(p.Tools)) > 0
	several := delegates || handsOver
	parallel := hasTools && p.Limits.ParallelTools > 1
	return agui.AgentCapabilities{
		Identity: &agui.IdentityCapabilities{
			Name: p.Name, Type: "perdure", Description: p.Description,
			Metadata: agui.Metadata{"perdure.revision": revision(p)}, // a revision is no semantic version
		},
		Transport: &agui.TransportCapabilities{Streaming: &yes, WebSocket: &yes, HTTPBinary: &yes, PushNotifications: &no, Resumable: &yes},
		Tools:     &agui.ToolsCapabilities{Supported: &hasTools, ParallelCalls: &parallel, ClientProvided: &clients},
		Output:    &agui.OutputCapabilities{StructuredOutput: &no},
		State:     &agui.StateCapabilities{PersistentState: &yes, Snapshots: &yes, Deltas: deltas(p)},
		// The media that a model reads, and whether it reasons, are unknown here.
		Multimodal:     &agui.MultimodalCapabilities{Input: &agui.MultimodalInput{File: &no}},
		MultiAgent:     &agui.MultiAgentCapabilities{Supported: &several, Delegation: &delegates, Handoffs: &handsOver, Subagents: subagents},
		Execution:      &agui.ExecutionCapabilities{CodeExecution: &no, MaxIterations: maxIterations(p), MaxExecutionTime: maxExecutionTime(p)},
		HumanInTheLoop: &agui.HumanInTheLoopCapabilities{Approvals: &h.approves, Feedback: &no, Interrupts: h.interrupts(), ApproveWithEdits: &h.approves},
	}
}

func revision(p catalog.Published) json.RawMessage {
	text, err := json.Marshal(p.Revision)
	if err != nil { // a string can be encoded
		return nil
	}
	return text
}

// deltas: state deltas come from predictions, and from tools, which only the workers know. Without
// either there are none.
func deltas(p catalog.Published) *bool {
	switch {
	case len(p.State.Predict) > 0:
		return &yes
	case len(p.Tools) == 0:
		return &no
	}
	return nil
}

func maxIterations(p catalog.Published) *int64 {
	n := int64(p.Limits.Turns)
	return &n
}

// maxExecutionTime is in milliseconds.
func maxExecutionTime(p catalog.Published) *int64 {
	ms := p.Limits.Duration.Milliseconds()
	return &ms
}
