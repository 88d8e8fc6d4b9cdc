package pipeline

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents/expression"
)

// Outputs of steps are in the thread's state, at /perdure.steps/{name}. Outputs of steps in a map
// are in the entry of their item: /perdure.steps/{map}/{index}/{name}. Branches write concurrently,
// so each change is one JSON Patch operation that replaces as little as possible (writeOperation).

// op is an operation of JSON Patch (RFC 6902).
type op struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// resetOutputs makes the object of the outputs, so that concurrent branches need not make it. It
// removes the outputs of the run before, unless the position keeps them.
func (in *interpreter) resetOutputs() {
	state := expression.Decode(in.env.State)
	if _, ok := valueAt(state, in.outputsPath()).(map[string]any); ok && (in.position.Keeps || in.position.After != "") {
		return
	}
	in.applyOperation(writeOperation(state, "", in.outputsPath(), json.RawMessage("{}")))
}

// removeOutputs removes the outputs of a subagent's tree when that ends: only its result remains.
func (in *interpreter) removeOutputs() {
	home := in.outputsPath()
	if len(in.position.Branch) > 0 || in.position.Home == "" || in.position.Keeps || valueAt(expression.Decode(in.env.State), home) == nil {
		return
	}
	in.applyOperation(op{Op: "remove", Path: "/" + Outputs + "/" + escape(in.position.Home)})
}

// outputsPath returns the path to the outputs of the tree in the state.
func (in *interpreter) outputsPath() []any {
	if in.position.Home == "" {
		return []any{Outputs}
	}
	return []any{Outputs, in.position.Home}
}

// valueAt returns the value at the end of a path; nil = none.
func valueAt(container any, path []any) any {
	for _, token := range path {
		container = element(container, token)
	}
	return container
}

// element returns the member or entry of a container; nil = there is none. token is a string for
// objects, and an int for lists.
func element(container, token any) any {
	if index, ok := token.(int); ok {
		if list, _ := container.([]any); index < len(list) {
			return list[index]
		}
		return nil
	}
	object, _ := container.(map[string]any)
	return object[token.(string)]
}

// put writes a value as the output of a step, or as the member of it at subpath. The value must
// encode.
func (in *interpreter) put(step string, value any, subpath ...any) {
	raw, _ := expression.Encode(value) // a failure or nulls
	in.putRaw(step, raw, subpath...)
}

// putRaw writes an output at the place of the position's branch. Containers on the way that are
// missing, or of another kind because a client or a set step changed the state, are rebuilt.
func (in *interpreter) putRaw(step string, value json.RawMessage, subpath ...any) {
	path := append(in.outputs(), step)
	path = append(path, subpath...)
	in.applyOperation(writeOperation(expression.Decode(in.env.State), "", path, value))
}

// applyOperation applies an operation that was computed from the current state, so it must apply.
// Otherwise it ends Advance with an error.
func (in *interpreter) applyOperation(o op) {
	patch, err := expression.Encode([]op{o})
	if err == nil {
		err = in.applyPatch(patch)
	}
	if err != nil {
		in.err = err
	}
}

// outputs returns the path to the outputs of the steps of this position: strings for members, ints
// for indexes.
func (in *interpreter) outputs() []any {
	path := in.outputsPath()
	for _, ref := range in.position.Branch {
		if s := StepAt(in.definition, ref.Path); s != nil && s.Map != nil {
			path = append(path, s.Name, ref.Index)
		}
	}
	return path
}

// writeOperation returns the operation that puts a value at the end of a path. It descends as far
// as the containers have the right kind, so it does not touch what other branches write
// concurrently. current is the value at pointer.
func writeOperation(current any, pointer string, path []any, value json.RawMessage) op {
	if len(path) == 0 {
		return op{Op: "add", Path: pointer, Value: value}
	}
	switch token := path[0].(type) {
	case string:
		next := pointer + "/" + escape(token)
		object, ok := current.(map[string]any)
		if !ok {
			break
		}
		member, ok := object[token]
		if !ok || len(path) == 1 {
			return op{Op: "add", Path: next, Value: build(path[1:], value)}
		}
		return writeOperation(member, next, path[1:], value)
	case int:
		list, ok := current.([]any)
		if !ok || token >= len(list) {
			break
		}
		next := pointer + "/" + strconv.Itoa(token)
		if len(path) == 1 {
			return op{Op: "replace", Path: next, Value: value}
		}
		return writeOperation(list[token], next, path[1:], value)
	}
	return op{Op: replaceOrAdd(pointer), Path: pointer, Value: rebuild(current, path, value)}
}

// replaceOrAdd returns the operation that sets the value at a pointer. The whole document ("") is
// added, because there may be none.
func replaceOrAdd(pointer string) string {
	if pointer == "" {
		return "add"
	}
	return "replace"
}

// rebuild makes the container that the first token of a path needs. It keeps the entries of a list
// that is too short; path is not empty.
func rebuild(current any, path []any, value json.RawMessage) json.RawMessage {
	index, ok := path[0].(int)
	if !ok {
		return build(path, value)
	}
	list, _ := current.([]any)
	entries := make([]any, index+1)
	copy(entries, list)
	entries[index] = build(path[1:], value)
	raw, _ := expression.Encode(entries)
	return raw
}

// build wraps a value in the containers that a path names.
func build(path []any, value json.RawMessage) json.RawMessage {
	if len(path) == 0 {
		return value
	}
	if _, ok := path[0].(int); ok {
		return rebuild(nil, path, value)
	}
	raw, _ := expression.Encode(map[string]json.RawMessage{path[0].(string): build(path[1:], value)})
	return raw
}

// escapes encodes a name as a token of a JSON Pointer (RFC 6901).
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

func escape(name string) string { return escapes.Replace(name) }
