package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// WithTree returns a copy of an agent that has the steps of a program, which are given as JSON. It
// does not validate them: a wrong step fails when it begins.
func WithTree(d *agents.Definition, tree json.RawMessage) (*agents.Definition, error) {
	copied := *d
	if err := json.Unmarshal(tree, &copied.Steps); err != nil {
		return nil, fmt.Errorf("pipeline: steps of a program: %w", err)
	}
	if len(copied.Steps) == 0 {
		return nil, errors.New("pipeline: steps of a program: there are none")
	}
	return &copied, nil
}

// Value evaluates a CEL expression over the variables at a position, and returns the result as
// JSON. It changes nothing. The error is one of package expression.
func Value(expr string, position TreePosition, env Env) (json.RawMessage, error) {
	in := &interpreter{definition: &agents.Definition{}, position: position, env: env}
	variables := in.variables()
	e, err := expression.Compile(expr, extraNames(variables)...)
	if err != nil {
		return nil, err
	}
	value, err := e.Value(variables)
	if err != nil {
		return nil, err
	}
	return expression.Encode(value)
}
