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
	// hasApprovals tells that people decide about a call, a step, or a soft limit.
	hasApprovals bool
	// asksUser tells that the agent has a built-in tool that asks the user.
	asksUser bool
	// mayAskUser tells that the agent has tools of workers, is a program or is remote, which may ask. Only
	// the workers, or the other server, know.
	mayAskUser bool
}

// interrupts reports whether runs of the agent may end with interrupts of approvals or questions;
// nil = unknown.
func (i involvement) interrupts() *bool {
	switch {
	case i.hasApprovals || i.asksUser:
		return &yes
	case i.mayAskUser:
		return nil
	}
	return &no
}

// askingTools are the built-in tools that ask the user. silentTools are those that do not. All
// other tools are unknown.
var (
	askingTools = []string{"ask_user", "confirm"}
	silentTools = []string{"calculate", "current_time", "event", "wait"}
)

// involvementOf returns how an agent, and the agents that it uses, involve people. find returns an
// agent's definition; nil = it is not published, and counts for nothing.
func involvementOf(d *agents.Definition, find func(name string) *agents.Definition) involvement {
	// The agent itself is known: an agent may refer to itself.
	w := involvementWalk{find: find, known: map[string]bool{d.Name: true}}
	w.addConversation(d)
	return w.involvement
}

// involvementWalk collects how an agent and the agents that it uses involve people. Its methods add
// to the embedded involvement. Definitions may refer to each other in cycles; known ends the
// recursion.
type involvementWalk struct {
	involvement
	find  func(name string) *agents.Definition
	known map[string]bool // agents that were added
}

// addConversation adds an agent that may have the thread. Unlike those of subagents, its soft
// limits ask people.
func (w *involvementWalk) addConversation(d *agents.Definition) {
	w.hasApprovals = w.hasApprovals || d.Limits.Soft != nil
	w.addAgent(d)
	for _, name := range agents.Handoffs(d.Tools) {
		w.addOther(name, w.addConversation)
	}
}

// addAgent adds an agent without its limits and handoffs.
func (w *involvementWalk) addAgent(d *agents.Definition) {
	w.hasApprovals = w.hasApprovals || len(d.Approvals) > 0
	w.mayAskUser = w.mayAskUser || d.Workflow != "" || d.Remote != nil
	w.addTools(d.Tools)
	for i := range d.Steps {
		d.Steps[i].Each(w.addStep)
	}
}

// addStep adds a step of a pipeline: its approval, its tool, and its agent, inline or by name.
func (w *involvementWalk) addStep(s *agents.Step) {
	w.hasApprovals = w.hasApprovals || s.Approve != nil
	if s.Tool != "" {
		w.addTools([]string{s.Tool})
	}
	if s.Agent != nil && s.Agent.Name != "" {
		w.addOther(s.Agent.Name, w.addAgent)
	}
	if s.Agent != nil {
		w.addTools(s.Agent.Tools)
	}
}

// addOther adds another agent by add, at most once.
func (w *involvementWalk) addOther(name string, add func(*agents.Definition)) {
	if w.known[name] {
		return
	}
	w.known[name] = true
	if d := w.find(name); d != nil {
		add(d)
	}
}

// addTools adds tools, by patterns of names. Client tools raise no approval or question, so they
// are left out.
func (w *involvementWalk) addTools(patterns []string) {
	for _, name := range agents.Subagents(patterns) {
		w.addOther(name, w.addAgent)
	}
	serverTools, _ := agents.SplitTools(patterns)
	for _, pattern := range serverTools {
		w.asksUser = w.asksUser || slices.ContainsFunc(askingTools, func(tool string) bool {
			matches, err := path.Match(pattern, tool)
			return err == nil && matches
		})
		w.mayAskUser = w.mayAskUser || !slices.Contains(silentTools, pattern)
	}
}
