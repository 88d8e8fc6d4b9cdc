package activities

import (
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// invalidExpression is the code of the failure that a program gets for an expression without a
// value.
const invalidExpression = "invalid_expression"

// evaluate evaluates the expression of a program over the variables at its position, and sets
// next.Value. A failure is a result for the program: next.Failed is set. The message has nothing of
// the value, which may have content.
func (adv *advancer) evaluate(env pipeline.Env) error {
	value, err := pipeline.Value(adv.in.Expression, adv.in.Position.TreePosition, env)
	switch {
	case err != nil:
		adv.next.Failed = &pipeline.Failure{Code: invalidExpression, Message: "the expression has no value"}
	case len(value) > runs.MaxValue:
		adv.next.Failed = &pipeline.Failure{Code: "output_too_large", Message: "the value of the expression is too large for a workflow"}
	default:
		adv.next.Value = value
	}
	return nil
}

// evaluateResult evaluates the result of a program that has ended, and stores it. A failure fails the
// run.
func (adv *advancer) evaluateResult(env pipeline.Env) error {
	result, failed := pipeline.Result(adv.definition, adv.in.Position.TreePosition, env)
	adv.next.Failed = failed
	adv.storeResult(result)
	return nil
}
