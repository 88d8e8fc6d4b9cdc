package agents

import (
	"fmt"
	"slices"
	"strings"
)

// UseKind is the kind of what a definition uses of the workers.
type UseKind string

// Values of UseKind.
const (
	UseTool    UseKind = "tool"
	UseModel   UseKind = "model"
	UseProgram UseKind = "program"
	UseHost    UseKind = "host"    // of the server of a remote agent
	UseService UseKind = "service" // as which runs of triggers act
)

// Use is what a definition uses of the workers, whose operator has configured it.
type Use struct {
	Kind UseKind
	Name string // of a tool: the name or pattern as in Definition.Tools, mcp:server/tool for one of an MCP server
	Key  string // as in DefinitionError
}

// IsPattern reports whether the name stands for several tools.
func (u Use) IsPattern() bool { return u.Kind == UseTool && strings.Contains(u.Name, "*") }

// Uses returns the tools of workers, the models, the program, the host, and the services of triggers that the
// definition names, those of its inline agents included. The tools of clients, subagents and handoffs are not
// among them.
func (d *Definition) Uses() []Use {
	all := d.ownUses("")
	if d.Workflow != "" {
		all = append(all, Use{UseProgram, d.Workflow, "workflow"})
	}
	if d.Remote != nil {
		all = append(all, Use{UseHost, d.RemoteHost(), "remote.url"})
	}
	for i, t := range d.Triggers {
		if t.RunAs != "" {
			all = append(all, Use{UseService, t.RunAs, fmt.Sprintf("triggers[%d].runAs", i)})
		}
	}
	eachStep(d.Steps, func(s *Step) {
		if s.Agent != nil && s.Agent.Name == "" {
			all = append(all, d.Inline("", s.Agent).ownUses("steps")...)
		}
	})
	return all
}

// ownUses returns the tools and models of one agent. key is the key of the definition that has the
// agent; "" = the definition itself.
func (d *Definition) ownUses(key string) []Use {
	at := func(own string) string {
		if key != "" {
			return key
		}
		return own
	}
	var all []Use
	for i, tool := range d.Tools {
		if serverTools, _ := SplitTools([]string{tool}); len(serverTools) > 0 {
			all = append(all, Use{UseTool, tool, at(fmt.Sprintf("tools[%d]", i))})
		}
	}
	for i, model := range d.Models() {
		all = append(all, Use{UseModel, model, at(modelKey("model", i, len(d.Models())))})
	}
	if d.Context.Model != "" {
		all = append(all, Use{UseModel, d.Context.Model, at("context.model")})
	}
	if d.TitleModel != "" {
		all = append(all, Use{UseModel, d.TitleModel, at("titleModel")})
	}
	return all
}

// UsedAgents returns the names of the other agents that the definition names, those of its steps
// included: subagents, agents of handoffs and of steps. They are sorted, each once.
func (d *Definition) UsedAgents() []string {
	names := slices.Concat(d.StepAgents(), Subagents(d.Tools), Handoffs(d.Tools))
	slices.Sort(names)
	return slices.Compact(names)
}
