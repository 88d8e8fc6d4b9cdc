package agentroutes

import (
	"context"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/auth/policy"
)

// Step is a step of a pipeline in the answer about its agent: what a graph shows. It has neither
// prompts nor arguments. Conditions are set only for callers that may read the definition.
type Step struct {
	// Name is the last segment of the step's name in STEP_STARTED; "" = a compensation.
	Name string `json:"name,omitempty"`
	// Kind is the key of the step that makes it one: agent, tool, approve, parallel, map, route,
	// loop, set or steps.
	Kind string `json:"kind"`
	// Agent is the name of the agent that the step calls; "" = an inline one. Tool is the tool.
	Agent string `json:"agent,omitempty"`
	Tool  string `json:"tool,omitempty"`
	// IsConditional tells that the step may be skipped. When is the condition.
	IsConditional bool   `json:"isConditional,omitempty"`
	When          string `json:"when,omitempty"`
	// Items, Until and Max are those of a map or a loop.
	Items string `json:"items,omitempty"`
	Until string `json:"until,omitempty"`
	Max   int    `json:"max,omitempty"`
	// Attempts is the maximal number of attempts; 0 = one.
	Attempts int `json:"attempts,omitempty"`
	// Steps are the steps in the step: branches of a parallel, otherwise a sequence. Cases are those
	// of a route.
	Steps []Step `json:"steps,omitempty"`
	Cases []Case `json:"cases,omitempty"`
	// OnError are the steps after a failure. Continues tells that the pipeline continues after one.
	OnError    []Step `json:"onError,omitempty"`
	Continues  bool   `json:"continues,omitempty"`
	Compensate *Step  `json:"compensate,omitempty"`
}

// Case is a case of a route.
type Case struct {
	// When is the condition, only for callers that may read the definition.
	When  string `json:"when,omitempty"`
	Steps []Step `json:"steps"`
}

// steps returns the steps of an agent's definition, with conditions if the caller may read the
// definition. An agent with a model has none.
func (r *Routes) steps(ctx context.Context, p catalog.Published) []Step {
	mayRead := r.Access.CheckAgent(ctx, p.Tenant, p.Name, policy.ReadDefinition) == nil
	return outline{withConditions: mayRead}.list(p.Steps)
}

// outline describes steps.
type outline struct{ withConditions bool }

func (o outline) list(steps []agents.Step) []Step {
	var list []Step
	for i := range steps {
		list = append(list, o.step(&steps[i]))
	}
	return list
}

func (o outline) step(s *agents.Step) Step {
	step := Step{
		Name: s.Name, Kind: s.Kind(), Tool: s.Tool, IsConditional: s.When != "", When: o.condition(s.When),
		OnError: o.list(s.OnError.Steps), Continues: s.OnError.Continue, Steps: o.list(s.Steps),
	}
	switch {
	case s.Agent != nil:
		step.Agent = s.Agent.Name
	case s.Parallel != nil:
		step.Steps = o.list(s.Parallel.Steps)
	case s.Map != nil:
		step.Items, step.Steps = o.condition(s.Map.Items), o.list(s.Map.Steps)
	case s.Loop != nil:
		step.Max, step.Until, step.Steps = s.Loop.Max, o.condition(s.Loop.Until), o.list(s.Loop.Steps)
	}
	for _, c := range s.Route {
		step.Cases = append(step.Cases, Case{When: o.condition(c.When), Steps: o.list(c.Steps)})
	}
	if s.Retry != nil {
		step.Attempts = s.Retry.Attempts
	}
	if s.Compensate != nil {
		undo := o.step(s.Compensate)
		step.Compensate = &undo
	}
	return step
}

// condition returns an expression of the definition, if the caller may read it.
func (o outline) condition(expression string) string {
	if !o.withConditions {
		return ""
	}
	return expression
}
