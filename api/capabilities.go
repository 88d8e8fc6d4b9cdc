package api

import (
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
)

var yes, no = true, false

// capabilities declares what holds for an agent. What is left out is unknown, not absent.
func capabilities(p catalog.Published) agui.AgentCapabilities {
	hasTools := len(p.Tools) > 0
	return agui.AgentCapabilities{
		Identity:  &agui.IdentityCapabilities{Name: p.Name, Type: "perdure", Description: p.Description, Version: p.Revision},
		Transport: &agui.TransportCapabilities{Streaming: &yes, WebSocket: &no, HTTPBinary: &no, Resumable: &yes},
		Tools:     &agui.ToolsCapabilities{Supported: &hasTools, ParallelCalls: &hasTools, ClientProvided: &no},
		State:     &agui.StateCapabilities{PersistentState: &yes, Snapshots: &yes, Deltas: deltas(p)},
		// Which media a model reads, and whether it thinks, is not known here: they reach it, and are shown.
		Multimodal: &agui.MultimodalCapabilities{Input: &agui.MultimodalInput{File: &no}},
		Execution:  &agui.ExecutionCapabilities{MaxIterations: maxIterations(p)},
	}
}

// deltas come of predictions, and of tools, which are the workers' to know: without either there are
// none.
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
