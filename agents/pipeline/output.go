package pipeline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// op is an operation of JSON Patch.
type op struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	From  string          `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// reset makes the object of the outputs, so that concurrent branches need not make it. It removes
// the outputs of the run before, unless they are kept.
func (w *interpreter) reset() {
	state := expression.Decode(w.env.State)
	if _, there := valueAt(state, w.outputsPath()).(map[string]any); there && w.at.Keeps {
		return
	}
	w.change(write(state, "", w.outputsPath(), json.RawMessage("{}")))
}

// clear removes the outputs of a tree that worked for another one.
func (w *interpreter) clear() {
	home := w.outputsPath()
	if len(w.at.Branch) > 0 || w.at.Home == "" || w.at.Keeps || valueAt(expression.Decode(w.env.State), home) == nil {
		return
	}
	w.change(op{Op: "remove", Path: "/" + expression.Steps + "/" + escape(w.at.Home)})
}

// outputsPath returns the path to the outputs of the tree.
func (w *interpreter) outputsPath() []any {
	if w.at.Home == "" {
		return []any{expression.Steps}
	}
	return []any{expression.Steps, w.at.Home}
}

// valueAt returns the value at the end of a path; nil = none.
func valueAt(value any, way []any) any {
	for _, token := range way {
		value = at(value, token)
	}
	return value
}

// put writes the output of a step, or a member of it.
func (w *interpreter) put(step string, value any, below ...any) {
	raw, _ := expression.Encode(value) // a failure or nulls
	w.putRaw(step, raw, below...)
}

// putRaw writes an output at the place of the branch. Containers that are missing, or of another
// kind because the state was changed, are rebuilt.
func (w *interpreter) putRaw(step string, value json.RawMessage, below ...any) {
	way := append(w.outputs(), step)
	way = append(way, below...)
	w.change(write(expression.Decode(w.env.State), "", way, value))
}

// change applies an operation that was made for the state, so it fits.
func (w *interpreter) change(o op) {
	patch, err := expression.Encode([]op{o})
	if err == nil {
		err = w.apply(patch)
	}
	if err != nil {
		w.err = err
	}
}

// outputs returns the path to the outputs of the steps of this cursor: names of members, and
// indices.
func (w *interpreter) outputs() []any {
	way := w.outputsPath()
	for _, fork := range w.at.Branch {
		if s := StepAt(w.d, fork.Path); s != nil && s.Map != nil {
			way = append(way, s.Name, fork.Index)
		}
	}
	return way
}

// write returns the operation that puts a value at the end of a path. It descends as far as the
// containers have the right kind, so it does not touch what other branches write concurrently.
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

func replaceOrAdd(pointer string) string {
	if pointer == "" {
		return "add"
	}
	return "replace"
}

// rebuild makes the container that a path needs, and keeps the entries of a list that is too short.
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

// build makes the value with the containers around it that a path names.
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

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

func escape(name string) string { return escapes.Replace(name) }

// patchOf returns an operation of a set step as JSON Patch; nil = nothing to do.
func (w *interpreter) patchOf(o agents.Op, value any) (json.RawMessage, error) {
	out := op{Op: o.Op, Path: o.Path, From: o.From}
	if o.Op == "" {
		parent, token := w.parent(o.Path)
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

// parent returns the container that a pointer leads into, and the name of its member there.
func (w *interpreter) parent(pointer string) (at any, token string) {
	at = expression.Decode(w.env.State)
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
