package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"

	"github.com/perdure/perdure/agents/expression"
)

// ProposedCall is a tool call that a model has asked for, as conditions see it.
type ProposedCall struct {
	Agent, Tool string
	// Args, State and Input are JSON; empty or invalid JSON is null in conditions. State has only what
	// agents and their tools have written; nil = it is unknown, and a condition that needs it fails.
	// Input is what the client has sent.
	Args, State, Input json.RawMessage
	// Callers are all principals whose content the model has received. A nil one is unknown, and
	// null in conditions. Without any, conditions are evaluated once, with null.
	Callers []*Caller
}

// Caller is a principal, as conditions see it.
type Caller struct {
	Tenant, Subject string
	Roles           []string
}

// value returns the caller for CEL. All members exist, so that a condition does not fail because
// one is empty.
func (c *Caller) value() any {
	if c == nil {
		return nil
	}
	return map[string]any{"tenant": c.Tenant, "subject": c.Subject, "roles": c.Roles}
}

// condition is a compiled boolean expression. It is safe for concurrent use.
type condition struct{ program cel.Program }

// maxCost bounds the cost of one evaluation, in CEL's unit (about one operation). A condition that
// exceeds it fails.
const maxCost = 100_000

// conditionVariables returns the CEL environment of conditions, with CEL's standard functions. It
// is made once.
var conditionVariables = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("args", cel.DynType), cel.Variable("state", cel.DynType), cel.Variable("input", cel.DynType), cel.Variable("caller", cel.DynType),
		cel.Variable("tool", cel.StringType), cel.Variable("agent", cel.StringType),
	)
})

// compileCondition compiles a condition. The type of its value must be bool, or known only at run
// time.
func compileCondition(source string) (condition, error) {
	env, err := conditionVariables()
	if err != nil {
		return condition{}, fmt.Errorf("agents: condition: %w", err)
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		// The rest of the text shows the expression with a mark below it.
		first, _, _ := strings.Cut(strings.TrimPrefix(issues.Err().Error(), "ERROR: <input>:"), "\n")
		return condition{}, errors.New(first)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return condition{}, fmt.Errorf("the value is a %s, not true or false", t)
	}
	program, err := env.Program(checked, expression.Bounds(maxCost)...)
	if err != nil {
		return condition{}, fmt.Errorf("agents: condition: %w", err)
	}
	return condition{program}, nil
}

// holdsForAny evaluates the condition for each caller until it is true. It fails if it is not true
// and fails for a caller, for example because it selects a missing member.
func (c condition) holdsForAny(call ProposedCall) (bool, error) {
	variables := map[string]any{"args": decoded(call.Args), "input": decoded(call.Input), "tool": call.Tool, "agent": call.Agent}
	if call.State != nil {
		variables["state"] = decoded(call.State)
	}
	callers := call.Callers
	if len(callers) == 0 {
		callers = []*Caller{nil}
	}
	for _, caller := range callers {
		variables["caller"] = caller.value()
		if holds, err := c.holds(variables); holds || err != nil {
			return holds, err
		}
	}
	return false, nil
}

// holds evaluates the condition.
func (c condition) holds(variables map[string]any) (bool, error) {
	value, _, err := c.program.Eval(variables)
	if err != nil {
		return false, fmt.Errorf("agents: condition: %w", err)
	}
	holds, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("agents: the condition is a %s, not true or false", value.Type())
	}
	return holds, nil
}

// decoded returns a JSON value; nil for invalid JSON.
func decoded(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
