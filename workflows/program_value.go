package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
)

// Do does a step like [Agent.Do], and reads its output like [Value]: a value to branch on, of at
// most 8 KiB of JSON. For content use [Agent.Do], and refer to the step in later ones. A skipped
// step has no output, which is a *StepError.
func Do[T any](ctx workflow.Context, a *Agent, step agents.StepOf[T]) (T, error) {
	if err := a.Do(ctx, step); err != nil {
		var none T
		return none, err
	}
	return Value(ctx, a, step)
}

// Value reads the value of a reference, of at most 8 KiB of JSON. Its errors are those of
// [Agent.Value].
func Value[T any](ctx workflow.Context, a *Agent, of agents.Value[T]) (T, error) {
	var v T
	err := a.Value(ctx, of.Expr(), &v)
	return v, err
}
