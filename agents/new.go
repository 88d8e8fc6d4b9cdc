package agents

import "slices"

// New returns the definition d with the steps appended. The result is valid. The error is a
// *DefinitionError, or several joined, with the keys of a file.
//
//	plan := agents.Ask[Plan]("plan", agents.AgentStep{Instructions: "You plan research."},
//		"Plan: ${input.text}")
//	query := agents.Each("query", agents.Field(plan, &plan.Out.Queries))
//	found := agents.Call[string]("found", "search", agents.Args{"q": query})
//	d, err := agents.New(
//		agents.Definition{
//			Name: "research", Model: "openai/gpt-5-mini", Tools: []string{"search"},
//		},
//		plan,
//		agents.Map("searches", query, agents.Steps{found}))
func New(d Definition, steps ...Stepper) (*Definition, error) {
	d.Steps = append(slices.Clip(d.Steps), Steps(steps).list()...)
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return &d, nil
}

// StepOf is a step with an output of type T, and the reference to that output.
type StepOf[T any] struct {
	Step
	Ref[T]
}

// stepOf returns a step with the reference to its output.
func stepOf[T any](s Step) StepOf[T] { return StepOf[T]{s, Expr[T](memberOf("steps", s.Name))} }

// With returns the step with further options, such as those that refer to the step's own output.
func (s StepOf[T]) With(options ...Option) StepOf[T] {
	for _, o := range options {
		o.apply(&s.Step)
	}
	return s
}
