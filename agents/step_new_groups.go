package agents

import "cmp"

// Sequence returns a step that runs steps in order.
func Sequence(name string, steps Steps, options ...Option) Step {
	return withOptions(Step{Name: name, Steps: steps.list()}, options)
}

// Parallel returns a step that runs steps concurrently, each as a branch.
func Parallel(name string, branches Steps, options ...BranchOption) Step {
	s := Step{Name: name, Parallel: &ParallelStep{Steps: branches.list()}}
	for _, o := range options {
		o.applyToBranches(&s)
	}
	return s
}

// Item is the item of a list in the steps of a [Map]. It is a reference to the map's variable.
type Item[T any] struct {
	Ref[T]
	items string
}

// Each returns the item of a list. name is the name of its variable in expressions:
// [a-z][a-zA-Z0-9_]{0,31}; "" = item.
func Each[T any](name string, list Value[[]T]) Item[T] {
	return Item[T]{Expr[T](cmp.Or(name, defaultItem)), list.Expr()}
}

// Map returns a step that runs steps once for each item of a list, concurrently. Its output is a
// list in the order of the items. The entry of an item has the outputs of the steps by their names,
// and error if the item failed. [Collect] returns the outputs of one step.
func Map[T any](name string, item Item[T], steps Steps, options ...BranchOption) StepOf[[]map[string]any] {
	s := Step{Name: name, Map: &MapStep{Items: item.items, As: item.source, Steps: steps.list()}}
	for _, o := range options {
		o.applyToBranches(&s)
	}
	return stepOf[[]map[string]any](s)
}

// Collect returns a reference to the outputs of one step of a map, in the order of the items. Items
// in which the step has no output are left out.
func Collect[T any](of StepOf[[]map[string]any], step StepOf[T]) Ref[[]T] {
	has := "has(" + memberOf("x", step.Name) + ")"
	if !selectable(step.Name) {
		quoted, _ := plainJSON(step.Name) // a text can always be encoded
		has = string(quoted) + " in x"
	}
	return Expr[[]T](of.Expr() + ".filter(x, " + has + ").map(x, " + memberOf("x", step.Name) + ")")
}

// Route returns a step that runs the steps of the first case that applies: When(…).Then(…), and
// Default(…) as the last one.
func Route(name string, cases []Case, options ...Option) Step {
	return withOptions(Step{Name: name, Route: cases}, options)
}

// Then returns a case of a route that applies if the condition is true.
func (c Condition) Then(steps ...Stepper) Case {
	return Case{When: c.source, Steps: Steps(steps).list()}
}

// Default returns the case of a route that applies if no other does.
func Default(steps ...Stepper) Case { return Case{Steps: Steps(steps).list()} }

// Loop returns a step that repeats steps until the condition of [Until] is true, at most most
// times: 1 to 1,000.
func Loop(name string, most int, steps Steps, options ...LoopOption) Step {
	s := Step{Name: name, Loop: &LoopStep{Max: most, Steps: steps.list()}}
	for _, o := range options {
		o.applyToLoop(&s)
	}
	return s
}
