package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
)

// Do does a step as [Agent.Do] does, and then reads its output as [Value] does: a decision to branch on. What
// is content, or may be more than 8 KiB, had better stay where it is: leave that to [Agent.Do], and refer to the step in later ones. A step that
// was skipped has no output, and is a *StepError.
func Do[T any](ctx workflow.Context, a *Agent, step agents.StepOf[T]) (T, error) {
	if err := a.Do(ctx, step); err != nil {
		var none T
		return none, err
	}
	return Value(ctx, a, step)
}

// Value reads what a reference refers to, of at most 8 KiB, as [Agent.Value] does.
func Value[T any](ctx workflow.Context, a *Agent, of agents.Value[T]) (T, error) {
	var v T
	err := a.Value(ctx, of.Expr(), &v)
	return v, err
}
