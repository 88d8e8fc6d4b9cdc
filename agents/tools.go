package agents

import (
	"fmt"
	"slices"
	"strings"
)

// ClientPrefix begins the patterns of tools that clients bring with their input.
const ClientPrefix = "client:"

// AgentPrefix begins the names of agents that an agent may hand work to, as it calls a tool.
const AgentPrefix = "agent:"

// SplitTools tells the patterns of tools that workers have from those of clients' tools. Agents are neither, whether they
// are handed work or the thread.
func SplitTools(patterns []string) (ours, clients []string) {
	for _, p := range patterns {
		switch {
		case strings.HasPrefix(p, ClientPrefix):
			clients = append(clients, p)
		case !strings.HasPrefix(p, AgentPrefix) && !strings.HasPrefix(p, HandoffPrefix):
			ours = append(ours, p)
		}
	}
	return ours, clients
}

// Delegates are the names of the agents that the patterns name. Models call them by these names.
func Delegates(patterns []string) []string {
	var names []string
	for _, p := range patterns {
		if name, ok := strings.CutPrefix(p, AgentPrefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// complainDelegates finds names that are no agent's, and those that a tool of the agent has too: a model
// could not say which one it means.
func (d *Definition) complainDelegates() []complaint {
	var found []complaint
	for i, tool := range d.Tools {
		name, ok := strings.CutPrefix(tool, AgentPrefix)
		switch {
		case !ok:
		case !nameRule.MatchString(name):
			found = append(found, complaint{"tools", i, fmt.Sprintf("tools: %q must name one agent, without a pattern", tool)})
		case slices.Contains(d.Tools, name):
			found = append(found, complaint{"tools", i, fmt.Sprintf("tools: %q and %q have one name for the model", tool, name)})
		}
	}
	return found
}
