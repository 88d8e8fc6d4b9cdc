package agents

import (
	"fmt"
	"slices"
	"strings"
)

// HandoffPrefix begins, in Definition.Tools, the name of an agent to which this agent may hand the
// thread over.
const HandoffPrefix = "handoff:"

// handoffTool begins the name of the tool that models call for a handoff.
const handoffTool = "transfer_to_"

// HandoffTool returns the name of the tool for a handoff to an agent.
func HandoffTool(agent string) string { return handoffTool + agent }

// Handoffs returns the agents among tool patterns to which the thread may be handed over.
func Handoffs(patterns []string) []string {
	var names []string
	for _, p := range patterns {
		if name, ok := strings.CutPrefix(p, HandoffPrefix); ok {
			names = append(names, name)
		}
	}
	return names
}

// HandsOver reports whether the agent can take part in a handoff, in either role: it has neither
// steps nor a program. A remote agent only takes over, since it has no tools.
func (d *Definition) HandsOver() bool { return len(d.Steps) == 0 && d.Workflow == "" }

// handoffMistakes reports impossible handoffs: from an agent with steps or a program, to an
// invalid name, to the agent itself, and those whose tool has a name that is in use or too long.
func (d *Definition) handoffMistakes() []mistake {
	var found []mistake
	for i, tool := range d.Tools {
		name, ok := strings.CutPrefix(tool, HandoffPrefix)
		if !ok {
			continue
		}
		called := HandoffTool(name)
		switch {
		case !nameRule.MatchString(name):
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q must name one agent, without a pattern", tool)})
		case !d.HandsOver():
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q needs an agent with a model of its own, not with steps or a workflow", tool)})
		case name == d.Name:
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q is the agent itself", tool)})
		case !toolName.MatchString(called):
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q is too long: its tool is named %s, and tool names have at most 64 characters", tool, called)})
		case slices.Contains(d.Tools, called), slices.Contains(d.Tools, AgentPrefix+called):
			found = append(found, mistake{"tools", i, fmt.Sprintf("tools: %q and another tool have the same name for the model, %s", tool, called)})
		}
	}
	return found
}

// impossibleHandoffs reports handoffs to agents of the folder that cannot take part in a handoff.
func (f *Folder) impossibleHandoffs(positions map[string]SourcePosition) []error {
	cannotTakePart := map[string]bool{}
	for _, d := range f.Agents {
		cannotTakePart[d.Name] = !d.HandsOver()
	}
	var errs []error
	for _, d := range f.Agents {
		for _, name := range Handoffs(d.Tools) {
			if cannotTakePart[name] {
				reason := fmt.Sprintf("tools: %q has steps or a workflow, and cannot take over a thread", HandoffPrefix+name)
				errs = append(errs, positions[kindAgent+" "+d.Name].ErrorAt("tools", reason))
			}
		}
	}
	return errs
}
