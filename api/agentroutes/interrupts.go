package agentroutes

import (
	"path"
	"slices"

	"github.com/perdure/perdure/agents"
)

// This file derives from definitions whether runs of an agent may wait for people, for AG-UI's
// capabilities. The result is a lower bound: what workers do is unknown.

// involvement tells how an agent involves people, as far as definitions tell. The zero value means
// not at all.
type involvement struct {
	// approves tells that people decide about a call, a step, or a soft limit.
	approves bool
	// asks tells that the agent has a built-in tool that asks the user.
	asks bool
	// mayAsk tells that the agent has tools of workers or is a program, which may ask. Only the
	// workers know.
	mayAsk bool
}

// interrupts reports whether runs of the agent may end with interrupts of approvals or questions;
// nil = unknown.
func (p involvement) interrupts() *bool {
	switch {
	case p.approves || p.asks:
		return &yes
	case p.mayAsk:
		return nil
	}
	return &no
}

// askingTools are the built-in tools that ask the user. silentTools are those that do not. All
// other tools are unknown.
var (
	askingTools = []string{"ask_user", "confirm"}
	silentTools = []string{"calculate", "current_time"}
)

// involvementOf returns how an agent, and the agents that it uses, involve people. find returns an
// agent's definition; nil = it is not published, and counts for nothing.
func involvementOf(d *agents.Definition, find func(name string) *agents.Definition) involvement {
	// The agent itself is known: an agent may refer to itself.
	v := involved{find: find, known: map[string]bool{d.Name: true}}
	v.conversation(d)
	return v.involvement
}

// involved collects how an agent and the agents that it uses involve people. Its methods add to the
// embedded involvement. Definitions may refer to each other in cycles; known ends the recursion.
type involved struct {
	involvement
	find  func(name string) *agents.Definition
	known map[string]bool // agents that were added
}

// conversation adds an agent that may have the thread. Unlike those of subagents, its soft limits
// ask people.
func (v *involved) conversation(d *agents.Definition) {
	v.approves = v.approves || d.Limits.Soft != nil
	v.agent(d)
	for _, name := range agents.Handoffs(d.Tools) {
		v.other(name, v.conversation)
	}
}

// agent adds an agent without its limits and handoffs.
func (v *involved) agent(d *agents.Definition) {
	v.approves = v.approves || len(d.Approvals) > 0
	v.mayAsk = v.mayAsk || d.Workflow != ""
	v.tools(d.Tools)
	for i := range d.Steps {
		d.Steps[i].Each(v.step)
	}
}

// step adds a step of a pipeline: its approval, its tool, and its agent, inline or by name.
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

// other adds another agent by add, at most once.
func (v *involved) other(name string, add func(*agents.Definition)) {
	if v.known[name] {
		return
	}
	v.known[name] = true
	if d := v.find(name); d != nil {
		add(d)
	}
}

// tools adds tools, by patterns of names. Client tools raise no approval or question, so they are
// left out.
func (v *involved) tools(patterns []string) {
	for _, name := range agents.Subagents(patterns) {
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
