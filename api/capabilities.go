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
		Transport: &agui.TransportCapabilities{Streaming: &yes, WebSocket: &no, HTTPBinary: &yes, Resumable: &yes},
		Tools:     &agui.ToolsCapabilities{Supported: &hasTools, ParallelCalls: &hasTools, ClientProvided: &no},
		State:     &agui.StateCapabilities{PersistentState: &yes},
		Execution: &agui.ExecutionCapabilities{MaxIterations: maxIterations(p)},
	}
}

func maxIterations(p catalog.Published) *int64 {
	n := int64(p.Limits.Turns)
	return &n
}
