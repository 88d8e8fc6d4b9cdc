package pipeline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// Outputs of steps are in the thread's state, at /steps/{name}. Outputs of steps in a map are in
// the entry of their item: /steps/{map}/{index}/{name}. Branches write concurrently, so each change
// is one JSON Patch operation that replaces as little as possible (write).

// op is an operation of JSON Patch (RFC 6902).
type op struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// reset makes the object of the outputs, so that concurrent branches need not make it. It removes
// the outputs of the run before, unless the cursor keeps them.
func (in *interpreter) reset() {
	state := expression.Decode(in.env.State)
	if _, there := valueAt(state, in.outputsPath()).(map[string]any); there && in.at.Keeps {
		return
	}
	in.change(write(state, "", in.outputsPath(), json.RawMessage("{}")))
}

// clear removes the outputs of a subagent's tree when that ends: only its result remains.
func (in *interpreter) clear() {
	home := in.outputsPath()
	if len(in.at.Branch) > 0 || in.at.Home == "" || in.at.Keeps || valueAt(expression.Decode(in.env.State), home) == nil {
		return
	}
	in.change(op{Op: "remove", Path: "/" + expression.Steps + "/" + escape(in.at.Home)})
}

// outputsPath returns the path to the outputs of the tree in the state.
func (in *interpreter) outputsPath() []any {
	if in.at.Home == "" {
		return []any{expression.Steps}
	}
	return []any{expression.Steps, in.at.Home}
}

// valueAt returns the value at the end of a path; nil = none.
func valueAt(value any, way []any) any {
	for _, token := range way {
		value = at(value, token)
	}
	return value
}

// put writes a value as the output of a step, or as the member of it at the path below. The value
// must encode.
func (in *interpreter) put(step string, value any, below ...any) {
	raw, _ := expression.Encode(value) // a failure or nulls
	in.putRaw(step, raw, below...)
}

// putRaw writes an output at the place of the cursor's branch. Containers on the way that are
// missing, or of another kind because a client or a set step changed the state, are rebuilt.
func (in *interpreter) putRaw(step string, value json.RawMessage, below ...any) {
	way := append(in.outputs(), step)
	way = append(way, below...)
	in.change(write(expression.Decode(in.env.State), "", way, value))
}

// change applies an operation that was computed from the current state, so it must apply. Otherwise
// it ends Advance with an error.
func (in *interpreter) change(o op) {
	patch, err := expression.Encode([]op{o})
	if err == nil {
		err = in.apply(patch)
	}
	if err != nil {
		in.err = err
	}
}

// outputs returns the path to the outputs of the steps of this cursor: strings for members, ints
// for indexes.
func (in *interpreter) outputs() []any {
	way := in.outputsPath()
	for _, fork := range in.at.Branch {
		if s := StepAt(in.d, fork.Path); s != nil && s.Map != nil {
			way = append(way, s.Name, fork.Index)
		}
	}
	return way
}

// write returns the operation that puts a value at the end of a path. It descends as far as the
// containers have the right kind, so it does not touch what other branches write concurrently. at
// is the value at pointer.
func write(at any, pointer string, way []any, value json.RawMessage) op {
	if len(way) == 0 {
		return op{Op: "add", Path: pointer, Value: value}
	}
	switch step := way[0].(type) {
	case string:
		next := pointer + "/" + escape(step)
		object, ok := at.(map[string]any)
		if !ok {
			break
		}
		member, there := object[step]
		if !there || len(way) == 1 {
			return op{Op: "add", Path: next, Value: build(way[1:], value)}
		}
		return write(member, next, way[1:], value)
	case int:
		list, ok := at.([]any)
		if !ok || step >= len(list) {
			break
		}
		next := pointer + "/" + strconv.Itoa(step)
		if len(way) == 1 {
			return op{Op: "replace", Path: next, Value: value}
		}
		return write(list[step], next, way[1:], value)
	}
	return op{Op: replaceOrAdd(pointer), Path: pointer, Value: rebuild(at, way, value)}
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
// that is too short; way is not empty.
func rebuild(at any, way []any, value json.RawMessage) json.RawMessage {
	index, ok := way[0].(int)
	if !ok {
		return build(way, value)
	}
	list, _ := at.([]any)
	entries := make([]any, index+1)
	copy(entries, list)
	entries[index] = build(way[1:], value)
	raw, _ := expression.Encode(entries)
	return raw
}

// build wraps a value in the containers that a path names.
func build(way []any, value json.RawMessage) json.RawMessage {
	if len(way) == 0 {
		return value
	}
	if _, ok := way[0].(int); ok {
		return rebuild(nil, way, value)
	}
	raw, _ := expression.Encode(map[string]json.RawMessage{way[0].(string): build(way[1:], value)})
	return raw
}

// escapes encodes a name as a token of a JSON Pointer (RFC 6901).
var escapes = strings.NewReplacer("~", "~0", "/", "~1")

func escape(name string) string { return escapes.Replace(name) }

// patchOf returns an operation of a set step as a JSON Patch; nil = nothing to do. An operation
// without op sets the value at its path, whether or not there is one; a null value removes it.
func (in *interpreter) patchOf(o agents.Op, value any) (json.RawMessage, error) {
	out := op{Op: o.Op, Path: o.Path, From: o.From}
	// The operation depends on what the state has at the path: add inserts into a list, and replace
	// does not.
	if o.Op == "" {
		parent, token := in.parent(o.Path)
		list, inList := parent.([]any)
		object, _ := parent.(map[string]any)
		_, there := object[token]
		if n, err := strconv.Atoi(token); inList && err == nil {
			there = n < len(list)
		}
		switch {
		case o.Value == nil && !there:
			return nil, nil
		case o.Value == nil:
			out.Op = "remove"
		case inList && there:
			out.Op = "replace"
		default:
			out.Op = "add"
		}
	}
	switch out.Op {
	case "add", "replace", "test":
		raw, err := expression.Encode(value)
		if err != nil {
			return nil, err
		}
		out.Value = raw
	case "remove", "move", "copy":
	default: // only in a tree that was not validated; readers would skip it
		return nil, fmt.Errorf("there is no operation %.20q", out.Op)
	}
	return expression.Encode([]op{out})
}

// parent returns the container that a JSON Pointer leads into, and the token of the member in it.
// The container is nil if the state has none there.
func (in *interpreter) parent(pointer string) (at any, token string) {
	at = expression.Decode(in.env.State)
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	last := len(tokens) - 1
	for _, t := range tokens[:last] {
		at = member(at, t)
	}
	return at, tokens[last]
}

// member returns the member or entry of a container by the token of a JSON Pointer; nil = there is
// none.
func member(at any, token string) any {
	switch at := at.(type) {
	case map[string]any:
		return at[token]
	case []any:
		if n, err := strconv.Atoi(token); err == nil && n >= 0 && n < len(at) {
			return at[n]
		}
	}
	return nil
}
