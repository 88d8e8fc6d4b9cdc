package pipeline

import (
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/agents"
)

// Result evaluates the result of an agent with steps or a program over the variables at a position,
// and checks it. It changes nothing. The value is nil if the agent has no output. The failure has the
// code invalid_expression, output_too_large or invalid_output; it may have a detail.
func Result(d *agents.Definition, position TreePosition, env Env) (json.RawMessage, *Failure) {
	if d.Output == nil {
		return nil, nil
	}
	value, err := Value(d.ResultValue(), position, env)
	if err != nil {
		return nil, new(newFailure("invalid_expression", "output.value: %s", err))
	}
	if len(value) > agents.MaxOutput {
		return nil, new(newFailure("output_too_large", "output.value has more than %d bytes", agents.MaxOutput))
	}
	err = d.Output.Check(value)
	if err == nil {
		return value, nil
	}
	f := newFailure("invalid_output", "the result of the agent does not fit its schema")
	if invalid := (*agents.AnswerError)(nil); errors.As(err, &invalid) {
		f.Detail, f.Detailed = invalid.Detail(), true
	}
	return nil, &f
}

// evaluateResult evaluates the result of the agent when its last step has ended. The steps of a
// branch or of a program are not all of the agent's. A failure fails the tree.
func (in *interpreter) evaluateResult() (failed *Failure) {
	if len(in.position.Branch) > 0 || in.definition.Workflow != "" {
		return nil
	}
	in.result, failed = Result(in.definition, in.position, in.env)
	return failed
}
