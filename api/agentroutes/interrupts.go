package agentroutes

import (
	"path"
	"slices"

	"github.com/perdure/perdure/agents"
)

// This file derives from definitions whether runs of an agent may end with interrupts, for AG-UI's
// capabilities. The result is a lower bound: what workers do is unknown.

// involvement tells how an agent involves people and waits, as far as definitions tell. The zero value
// means not at all.
type involvement struct {
	// hasApprovals tells that people decide about a call, a step, or a soft limit.
	hasApprovals bool
	// asksUser tells that the agent has a built-in tool that asks the user.
	asksUser bool
	// mayAskUser tells that the agent has tools of workers, is a program or is remote, which may ask. Only
	// the workers, or the other server, know.
	mayAskUser bool
	// waits tells that runs may wait for a time or an event. They end with an interrupt.
	waits bool
}

// interrupts reports whether runs of the agent may end with interrupts; nil = unknown.
func (i involvement) interrupts() *bool {
	switch {
	case i.hasApprovals || i.asksUser || i.waits:
		return &yes
	case i.mayAskUser:
		return nil
	}
	return &no
}

// askingTools are the built-in tools that ask the user, waitTools those that wait for a time or an
// event. silentTools are those that do not ask. All other tools are unknown.
var (
	askingTools = []string{"ask_user", "confirm"}
	waitTools   = []string{agents.EventTool, agents.WaitTool}
	silentTools = []string{"calculate", "current_time", agents.EventTool, agents.WaitTool}
)

// involvementOf returns how an agent, and the agents that it uses, involve people and wait. find returns an
// agent's definition; nil = it is not published, and counts for nothing.
func involvementOf(d *agents.Definition, find func(name string) *agents.Definition) involvement {
	// The agent itself is known: an agent may refer to itself.
	w := involvementWalk{find: find, known: map[string]bool{d.Name: true}}
	w.addConversation(d)
	return w.involvement
}

// involvementWalk collects how an agent and the agents that it uses involve people and wait. Its methods add
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
		w.asksUser = w.asksUser || matchesAny(pattern, askingTools)
		w.waits = w.waits || matchesAny(pattern, waitTools)
		w.mayAskUser = w.mayAskUser || !slices.Contains(silentTools, pattern)
	}
}

// matchesAny reports whether a pattern matches the name of one of the tools.
func matchesAny(pattern string, tools []string) bool {
	return slices.ContainsFunc(tools, func(tool string) bool {
		matches, err := path.Match(pattern, tool)
		return err == nil && matches
	})
}
