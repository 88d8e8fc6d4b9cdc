package agentroutes

import (
	"path"
	"slices"

	"github.com/perdure/perdure/agents"
)

// people is how an agent involves people, as far as definitions tell.
type people struct {
	// approves: people decide about a call, a step, or a limit that the run passes.
	approves bool
	// asks: the agent has a tool that asks the user.
	asks bool
	// mayAsk: the agent has tools or a program of its workers, which may ask. Only the workers
	// know.
	mayAsk bool
}

// interrupts reports whether runs of the agent may end with interrupts; nil = unknown.
func (p people) interrupts() *bool {
	switch {
	case p.approves || p.asks:
		return &yes
	case p.mayAsk:
		return nil
	}
	return &no
}

// asking are the built-in tools that ask the user, silent those that do not.
var (
	askingTools = []string{"ask_user", "confirm"}
	silentTools = []string{"calculate", "current_time"}
)

// involvementOf returns how an agent, and the agents that it uses, involve people. find returns an
// agent's definition; nil = it is not published.
func involvementOf(d *agents.Definition, find func(name string) *agents.Definition) people {
	v := involved{find: find, known: map[string]bool{d.Name: true}}
	v.conversation(d)
	return v.people
}

// involved collects how agents involve people.
type involved struct {
	people
	find  func(name string) *agents.Definition
	known map[string]bool // agents that were added
}

// conversation adds an agent that has the thread: its soft limits ask people.
func (v *involved) conversation(d *agents.Definition) {
	v.approves = v.approves || d.Limits.Soft != nil
	v.agent(d)
	for _, name := range agents.Handoffs(d.Tools) {
		v.other(name, v.conversation)
	}
}

func (v *involved) agent(d *agents.Definition) {
	v.approves = v.approves || len(d.Approvals) > 0
	v.mayAsk = v.mayAsk || d.Workflow != ""
	v.tools(d.Tools)
	for i := range d.Steps {
		d.Steps[i].Each(v.step)
	}
}

func (v *involved) step(s *agents.Step) {
	v.approves = v.approves || s.Approve != nil
	if s.Tool != "" {
		v.tools([]string{s.Tool})
	}
	if s.Agent != nil && s.Agent.Name != "" {
		v.other(s.Agent.Name, v.agent)
	}
	if s.Agent != nil {
		v.tools(s.Agent.Tools)
	}
}

// other adds another agent, once.
func (v *involved) other(name string, look func(*agents.Definition)) {
	if v.known[name] {
		return
	}
	v.known[name] = true
	if d := v.find(name); d != nil {
		look(d)
	}
}

func (v *involved) tools(patterns []string) {
	for _, name := range agents.Delegates(patterns) {
		v.other(name, v.agent)
	}
	ours, _ := agents.SplitTools(patterns)
	for _, pattern := range ours {
		v.asks = v.asks || slices.ContainsFunc(askingTools, func(tool string) bool {
			matches, err := path.Match(pattern, tool)
			return err == nil && matches
		})
		v.mayAsk = v.mayAsk || !slices.Contains(silentTools, pattern)
	}
}
