package agents

import "cmp"

// Sequence runs steps in order, as one step.
func Sequence(name string, steps Steps, options ...Option) Step {
	return withOptions(Step{Name: name, Steps: steps.list()}, options)
}

// Parallel runs steps concurrently.
func Parallel(name string, branches Steps, options ...BranchOption) Step {
	s := Step{Name: name, Parallel: &ParallelStep{Steps: branches.list()}}
	for _, o := range options {
		o.branch(&s)
	}
	return s
}

// Item is an item of a list, for the steps of [Map].
type Item[T any] struct {
	Ref[T]
	items string
}

// Each returns the item of a list. The name is that of its variable in expressions:
// [a-z][a-zA-Z0-9_]{0,31}. Empty = item.
func Each[T any](name string, list Value[[]T]) Item[T] {
	return Item[T]{Expr[T](cmp.Or(name, defaultItem)), list.Expr()}
}

// Map runs steps once for each item of a list, concurrently. For each item, in order, its output
// has the outputs of the steps by their names, and error if the item failed. [Collect] returns
// those of one step.
func Map[T any](name string, item Item[T], steps Steps, options ...BranchOption) StepOf[[]map[string]any] {
	s := Step{Name: name, Map: &MapStep{Items: item.items, As: item.source, Steps: steps.list()}}
	for _, o := range options {
		o.branch(&s)
	}
	return stepOf[[]map[string]any](s)
}

// Collect refers to the outputs of one step of a map, in the order of the items, without items that
// have none.
func Collect[T any](of StepOf[[]map[string]any], step StepOf[T]) Ref[[]T] {
	has := "has(" + memberOf("x", step.Name) + ")"
	if !selectable(step.Name) {
		quoted, _ := plainJSON(step.Name) // a text can always be encoded
		has = string(quoted) + " in x"
	}
	return Expr[[]T](of.Expr() + ".filter(x, " + has + ").map(x, " + memberOf("x", step.Name) + ")")
}

// Route runs the steps of the first case that applies: When(…).Then(…), and Default(…) as the last.
func Route(name string, cases []Case, options ...Option) Step {
	return withOptions(Step{Name: name, Route: cases}, options)
}

// Then returns a case of a route that applies if the condition is true.
func (c Condition) Then(steps ...Stepper) Case {
	return Case{When: c.source, Steps: Steps(steps).list()}
}

// Default returns the case of a route that applies if no other does.
func Default(steps ...Stepper) Case { return Case{Steps: Steps(steps).list()} }

// Loop runs steps until [Until] is true, at most that many times: 1 to 1,000.
func Loop(name string, most int, steps Steps, options ...LoopOption) Step {
	s := Step{Name: name, Loop: &LoopStep{Max: most, Steps: steps.list()}}
	for _, o := range options {
		o.round(&s)
	}
	return s
}
