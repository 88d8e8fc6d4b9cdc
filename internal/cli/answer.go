package cli

import (
	"encoding/json"
	"slices"
)

// isQuestion tells by its reason whether it is a tool itself that asks, in the middle of a call, and not whether a call
// may be made.
func isQuestion(reason string) bool { return reason != "" && reason != "tool_call" }

// answerOf is what somebody has typed for an answer: to the question of a tool JSON that its schema describes, in place of
// a call's result the text. Of an object with one member that is required no more than the member need be typed.
func answerOf(reason string, schema json.RawMessage, text string) any {
	if !isQuestion(reason) {
		return text
	}
	name, kind := onlyMember(schema)
	switch {
	case name != "" && !isObject(text):
		return map[string]any{name: valueOf(kind, text)}
	case name != "":
		return json.RawMessage(text)
	}
	return valueOf("", text)
}

// valueOf is a value of a type of JSON Schema; "" = whatever the text is.
func valueOf(kind, text string) any {
	if kind == "string" || !json.Valid([]byte(text)) {
		return text
	}
	return json.RawMessage(text)
}

// onlyMember is the one member that an answer must have, with its type; name is empty if the schema wants something else.
func onlyMember(schema json.RawMessage) (name, kind string) {
	var s struct {
		Type       string
		Required   []string
		Properties map[string]struct{ Type any }
	}
	if json.Unmarshal(schema, &s) != nil || s.Type != "object" || len(slices.Compact(s.Required)) != 1 {
		return "", ""
	}
	name = s.Required[0]
	kind, _ = s.Properties[name].Type.(string)
	return name, kind
}

// answerForm says what an answer is: the one member that it must have, or the schema; "" = anything.
func answerForm(schema json.RawMessage) string {
	name, kind := onlyMember(schema)
	switch {
	case len(schema) == 0:
		return ""
	case kind != "":
		return "[" + name + " (" + kind + ")]"
	}
	return "[" + string(schema) + "]"
}

// wantedBy asks for an answer that fits the schema.
func wantedBy(schema json.RawMessage) string {
	switch name, kind := onlyMember(schema); {
	case kind != "":
		return line(name, 40) + " (" + line(kind, 40) + "): "
	case name != "" || len(schema) == 0:
		return "The answer: "
	}
	return "The answer, as JSON that fits " + line(string(schema), longest) + ": "
}
