package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/expression"
)

// variables returns the variables of expressions in the innermost step: those of every expression
// (state, steps, input, caller, messages), and, where they apply, the item and index of the maps
// around it, round, and error. While a step is compensated, steps has the outputs of the time when
// it had finished.
func (in *interpreter) variables() map[string]any {
	if in.variableCache == nil {
		state := expression.Decode(in.env.State)
		in.variableCache = map[string]any{
			"state": state, "steps": in.visibleOutputs(state), "input": in.inputValue(), "caller": callerValue(in.env.Caller),
			"messages": expression.Decode(in.env.Messages),
		}
		if in.position.Undoing != nil && len(in.position.Undo) > 0 {
			in.restoreOutputs(in.variableCache["steps"].(map[string]any))
		}
	}
	variables := maps.Clone(in.variableCache) // the others depend on the frames, and are not cached
	for i, ref := range in.position.Branch {
		if s := StepAt(in.definition, ref.Path); s != nil && s.Map != nil && i < len(in.env.Items) {
			variables[s.Map.Item()], variables["index"] = expression.Decode(in.env.Items[i]), int64(ref.Index)
		}
	}
	// Both exist only within a loop, onError steps or a compensation: elsewhere an expression that
	// uses them is invalid.
	round, failure := in.position.roundAndFailure()
	if round > 0 {
		variables["round"] = int64(round)
	}
	if failure != nil {
		variables["error"] = errorValue(*failure)
	}
	return variables
}

// extraNames returns the names of the variables that only some expressions have, sorted.
// Expressions are compiled with them.
func extraNames(variables map[string]any) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(variables)), func(name string) bool {
		return slices.Contains(expression.Standard(), name)
	})
}

// visibleOutputs returns the outputs of the tree, overlaid with those of the map items around the
// position: within an item the steps of the item hide those outside that have the same name.
func (in *interpreter) visibleOutputs(state any) map[string]any {
	current := valueAt(state, in.outputsPath())
	outputs := map[string]any{}
	copyInto := func() {
		if object, ok := current.(map[string]any); ok {
			maps.Copy(outputs, object)
		}
	}
	copyInto()
	for _, ref := range in.position.Branch {
		s := StepAt(in.definition, ref.Path)
		if s == nil || s.Map == nil {
			continue
		}
		value, _ := lookUp(current, s.Name)
		list, _ := value.([]any)
		current = nil
		if ref.Index < len(list) {
			current = list[ref.Index]
		}
		copyInto()
	}
	return outputs
}

// inputValue returns the run's input as a value, with the text of the user's last message in
// addition. A run without new messages has the last one of the conversation.
func (in *interpreter) inputValue() any {
	input, ok := expression.Decode(in.env.Input).(map[string]any)
	if !ok {
		input = map[string]any{}
	}
	messages, _ := input["messages"].([]any)
	// The run continues without a new message.
	if len(messages) == 0 {
		messages, _ = expression.Decode(in.env.Messages).([]any)
	}
	input["text"] = ""
	for _, m := range slices.Backward(messages) {
		if message, _ := m.(map[string]any); message["role"] == "user" {
			input["text"] = textOf(message["content"])
			break
		}
	}
	return input
}

// textOf returns a message's content, or the texts among its parts, joined by newlines.
func textOf(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	parts, _ := content.([]any)
	var texts []string
	for _, p := range parts {
		if part, _ := p.(map[string]any); part["type"] == "text" {
			text, _ := part["text"].(string)
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// callerValue returns the principal as a value of expressions; nil = the run has none. All members
// are present, so that no expression fails because one is empty.
func callerValue(c *agents.Caller) any {
	if c == nil {
		return nil
	}
	return map[string]any{"tenant": c.Tenant, "subject": c.Subject, "roles": c.Roles}
}

// evaluateCondition evaluates a condition. The failure names the step and the key with the
// expression.
func (in *interpreter) evaluateCondition(p openStep, key, source string) (bool, *Failure) {
	variables := in.variables()
	e, err := expression.Compile(source, extraNames(variables)...)
	if err != nil {
		return false, invalidExpression(p, key, err)
	}
	isTrue, err := e.Holds(variables)
	if err != nil {
		return false, invalidExpression(p, key, err)
	}
	return isTrue, nil
}

// evaluateText evaluates a template to at most agents.MaxOutput bytes. The failure names the step
// and the key.
func (in *interpreter) evaluateText(p openStep, key, source string) (string, *Failure) {
	variables := in.variables()
	t, err := expression.ParseTemplate(source, extraNames(variables)...)
	if err != nil {
		return "", invalidExpression(p, key, err)
	}
	text, err := t.Text(variables)
	if err != nil {
		return "", invalidExpression(p, key, err)
	}
	if len(text) > agents.MaxOutput {
		return "", new(newFailure("input_too_large", "step %q: %s has more than %d bytes", p.name, key, agents.MaxOutput))
	}
	return text, nil
}
