package activities

import (
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// invalidExpression is the code of an expression that fails.
const invalidExpression = "invalid_expression"

// evaluate returns the value of a program's expression.
func (w *walker) evaluate(env pipeline.Env) error {
	value, err := pipeline.Value(w.in.Expression, w.in.Position.Cursor, env)
	switch {
	case err != nil:
		w.next.Failed = &pipeline.Failure{Code: invalidExpression, Message: "the expression has no value"}
	case len(value) > runs.MaxValue:
		w.next.Failed = &pipeline.Failure{Code: "output_too_large", Message: "the value of the expression is too large for a workflow"}
	default:
		w.next.Value = value
	}
	return nil
}
