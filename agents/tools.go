package agents

import (
	"fmt"
	"slices"
	"strings"
)

// ClientPrefix begins the patterns of tools that clients declare in their inputs.
const ClientPrefix = "client:"

// AgentPrefix begins the names of subagents in Definition.Tools.
const AgentPrefix = "agent:"

// SplitTools separates the patterns of workers' tools (including those of MCP servers) from those
// of clients' tools. Subagents and handoffs are in neither list.
func SplitTools(patterns []string) (serverTools, clients []string) {
	for _, p := range patterns {
		switch {
		case strings.HasPrefix(p, ClientPrefix):
			clients = append(clients, p)
		case !strings.HasPrefix(p, AgentPrefix) && !strings.HasPrefix(p, HandoffPrefix):
			serverTools = append(serverTools, p)
		}
	}
	return serverTools, clients
}

// Subagents returns the names of the subagents among tool patterns. Models call a subagent by its
// name.
func Subagents(patterns []string) []string {
	var names []string
	for _, p := range patterns {
		if name, ok := strings.CutPrefix(p, AgentPrefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// subagentMistakes reports invalid names of subagents, and names that a tool of the agent also
// has: a call of such a name would be ambiguous.
func (d *Definition) subagentMistakes() []mistake {
	var found []mistake
	for i, tool := range d.Tools {
		name, ok := strings.CutPrefix(tool, AgentPrefix)
		switch {
		case !ok:
		case !nameRule.MatchString(name):
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q must name one agent, without a pattern", tool)})
		case slices.Contains(d.Tools, name):
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q and %q have the same name for the model", tool, name)})
		}
	}
	return found
}
