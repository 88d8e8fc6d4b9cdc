package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
	"github.com/perdure/perdure/agui"
)

// This file changes the state by the operations of a definition: those of a set step, and those
// that follow the result of a tool.

// errInvalidPatch tells that an operation does not apply to the state.
var errInvalidPatch = errors.New("the change does not apply to the state")

// errTooLarge tells that an operation has more than agents.MaxOutput bytes.
var errTooLarge = fmt.Errorf("the change has more than %d bytes", agents.MaxOutput)

// Set returns the JSON Patch of operations that follow each other, with the state after it. Their
// templates have the variables of the scope; the variable state is the state with the operations
// before. An error, which has no content, means that the state stays as it is.
func Set(ops []agents.Op, state json.RawMessage, sc expression.Scope, variables map[string]any) (patch, changed json.RawMessage, err error) {
	var all []json.RawMessage
	for i, o := range ops {
		variables["state"] = expression.Decode(state)
		one, err := operationOf(o, state, sc, variables)
		if err == nil && one != nil {
			all = append(all, one)
			state, err = patchState(state, one)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("set[%d]: %w", i, err)
		}
	}
	if len(all) == 0 {
		return nil, state, nil
	}
	patch, err = expression.Encode(all)
	return patch, state, err
}

// patchState applies one operation to the state.
func patchState(state, operation json.RawMessage) (json.RawMessage, error) {
	if len(operation) > agents.MaxOutput {
		return nil, errTooLarge
	}
	if len(state) == 0 {
		state = json.RawMessage("null")
	}
	changed, err := agui.Patch(state, patchOf(operation))
	if err != nil {
		return nil, errInvalidPatch
	}
	return changed, nil
}

// patchOf returns a JSON Patch of one operation.
func patchOf(operation json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage("["), operation...), ']')
}

// operationOf evaluates the templates of an operation, and returns it as one of JSON Patch; nil =
// nothing to do. An operation without op sets the value at its path, whether or not there is one,
// and makes the containers on the way that are missing; a literal null removes it.
func operationOf(o agents.Op, state json.RawMessage, sc expression.Scope, variables map[string]any) (json.RawMessage, error) {
	value, err := sc.Fill(o.Value, variables)
	if err != nil {
		return nil, err
	}
	out := op{Op: o.Op}
	if out.Path, err = agents.ResolvePointer(o.Path, o.Op != "test", sc, variables); err != nil {
		return nil, err
	}
	if o.From != "" {
		if out.From, err = agents.ResolvePointer(o.From, o.Op == "move", sc, variables); err != nil {
			return nil, err
		}
	}
	// The operation depends on what the state has at the path.
	if o.Op == "" {
		if out, value = setOperation(out, o.Value == nil, value, expression.Decode(state)); out.Op == "" {
			return nil, nil
		}
	}
	switch out.Op {
	case "add", "replace", "test":
		if out.Value, err = expression.Encode(value); err != nil {
			return nil, err
		}
	case "remove", "move", "copy":
	default: // only in a tree that was not validated; readers would skip it
		return nil, fmt.Errorf("there is no operation %.20q", out.Op)
	}
	return expression.Encode(out)
}

// setOperation returns the operation of JSON Patch, and its value, that sets the value at the path
// of o, or removes it. add inserts into a list, and replace does not. Op is "" if there is nothing
// to remove.
func setOperation(o op, removes bool, value, state any) (op, any) {
	tokens := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
	last := len(tokens) - 1
	container := state
	for i, escaped := range tokens {
		token := unescape(escaped)
		next, exists := lookUp(container, token)
		_, inList := container.([]any)
		switch {
		case exists && i < last:
			container = next
			continue
		case removes && exists:
			o.Op = "remove"
		case removes:
			o.Op = ""
		case exists && inList:
			o.Op = "replace"
		default:
			// Containers that are missing are made with the value. In a list they cannot be.
			o.Op = "add"
			if _, isObject := container.(map[string]any); isObject && i < last {
				o.Path, value = "/"+strings.Join(tokens[:i+1], "/"), wrap(tokens[i+1:], value)
			}
		}
		return o, value
	}
	return o, value
}

// wrap returns a value in the objects that the tokens of a JSON pointer name; - makes a list.
func wrap(tokens []string, value any) any {
	for i := len(tokens) - 1; i >= 0; i-- {
		if tokens[i] == "-" {
			value = []any{value}
		} else {
			value = map[string]any{unescape(tokens[i]): value}
		}
	}
	return value
}

// unescapes decodes a token of a JSON Pointer (RFC 6901).
var unescapes = strings.NewReplacer("~1", "/", "~0", "~")

func unescape(token string) string { return unescapes.Replace(token) }

// lookUp returns the member or entry of a container by the token of a JSON Pointer, and whether
// there is one.
func lookUp(container any, token string) (value any, exists bool) {
	switch container := container.(type) {
	case map[string]any:
		value, exists = container[token]
	case []any:
		if n, err := strconv.Atoi(token); err == nil && n >= 0 && n < len(container) {
			return container[n], true
		}
	}
	return value, exists
}
