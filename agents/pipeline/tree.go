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
	with := *d
	if err := json.Unmarshal(tree, &with.Steps); err != nil {
		return nil, fmt.Errorf("pipeline: steps of a program: %w", err)
	}
	if len(with.Steps) == 0 {
		return nil, errors.New("pipeline: steps of a program: there are none")
	}
	return &with, nil
}

// Value evaluates a CEL expression over the variables at a cursor, and returns the result as JSON.
// It changes nothing. The error is one of package expression.
func Value(expr string, at Cursor, env Env) (json.RawMessage, error) {
	in := &interpreter{d: &agents.Definition{}, at: at, env: env}
	variables := in.variables()
	e, err := expression.Compile(expr, names(variables)...)
	if err != nil {
		return nil, err
	}
	value, err := e.Value(variables)
	if err != nil {
		return nil, err
	}
	return expression.Encode(value)
}
