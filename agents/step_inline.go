package agents

import (
	"slices"
)

// Inline returns the definition of an inline agent. Fields that the step does not set are those of
// the pipeline, except instructions, tools and output. Its name is <pipeline>.<step>: no published agent
// has a dot in its name.
func (d *Definition) Inline(step string, a *AgentStep) *Definition {
	inline := *d
	inline.Name = d.Name + "." + step
	inline.Description, inline.TitleModel, inline.Steps, inline.Output = "", "", nil, nil
	inline.Instructions, inline.Tools = a.Instructions, a.Tools
	if a.Model != "" {
		inline.Model, inline.Fallback.Models = a.Model, a.Fallback.Models
	}
	if len(a.Fallback.On) > 0 {
		inline.Fallback.On = a.Fallback.On
	}
	if a.Reasoning != (Reasoning{}) {
		inline.Reasoning = a.Reasoning
	}
	if !a.State.isZero() {
		inline.State = a.State
	}
	inline.Limits = a.Limits.or(d.Limits.orDefault())
	return &inline
}

// StepTools returns the names of the tools that tool steps call, sorted, each once. Tools of inline
// agents are not included.
func (d *Definition) StepTools() []string {
	var names []string
	eachStep(d.Steps, func(s *Step) {
		if s.Tool != "" {
			names = append(names, s.Tool)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// StepAgents returns the names of the agents that steps run, and of the subagents of inline agents,
// sorted, each once.
func (d *Definition) StepAgents() []string {
	var names []string
	eachStep(d.Steps, func(s *Step) {
		switch {
		case s.Agent == nil:
		case s.Agent.Name != "":
			names = append(names, s.Agent.Name)
		default:
			names = append(names, Subagents(s.Agent.Tools)...)
		}
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// InlineTools returns the tool patterns of all inline agents, each once, sorted.
func (d *Definition) InlineTools() []string {
	var patterns []string
	eachStep(d.Steps, func(s *Step) {
		if s.Agent != nil {
			patterns = append(patterns, s.Agent.Tools...)
		}
	})
	slices.Sort(patterns)
	return slices.Compact(patterns)
}

// FindStep returns the step with a name; nil = there is none. It is a pointer into d.
func (d *Definition) FindStep(name string) *Step {
	var step *Step
	eachStep(d.Steps, func(s *Step) {
		if s.Name == name && name != "" {
			step = s
		}
	})
	return step
}

// Compensates reports whether a step in the branches of this step has a compensation.
func (s *Step) Compensates() bool {
	found := false
	eachStep(s.branches(), func(inner *Step) { found = found || inner.Compensate != nil })
	return found
}

// branches returns the steps of a parallel or map step; nil for other steps.
func (s *Step) branches() []Step {
	switch {
	case s.Parallel != nil:
		return s.Parallel.Steps
	case s.Map != nil:
		return s.Map.Steps
	}
	return nil
}

// Each calls f for the step and all steps in it, outer ones before inner ones.
func (s *Step) Each(f func(*Step)) { eachStep([]Step{*s}, f) }

// eachStep calls f for every step of a tree, including compensations, outer ones before inner ones.
func eachStep(steps []Step, f func(*Step)) {
	for i := range steps {
		s := &steps[i]
		f(s)
		for _, inner := range s.Inner() {
			eachStep(inner, f)
		}
		if s.Compensate != nil {
			f(s.Compensate)
			for _, inner := range s.Compensate.Inner() {
				eachStep(inner, f)
			}
		}
	}
}

// Inner returns the lists of steps in a step, without its compensation.
func (s *Step) Inner() [][]Step {
	lists := [][]Step{s.Steps, s.OnError.Steps}
	if s.Parallel != nil {
		lists = append(lists, s.Parallel.Steps)
	}
	if s.Map != nil {
		lists = append(lists, s.Map.Steps)
	}
	if s.Loop != nil {
		lists = append(lists, s.Loop.Steps)
	}
	for _, c := range s.Route {
		lists = append(lists, c.Steps)
	}
	return lists
}

// Asks reports whether the step, or a step in it, is an approve step.
func (s *Step) Asks() bool {
	found := false
	eachStep([]Step{*s}, func(inner *Step) { found = found || inner.Approve != nil })
	return found
}
