package cli

import (
	"encoding/json"
	"slices"
)

// isQuestion reports, by the reason of an interrupt, whether a tool asks a question. Otherwise the
// interrupt is an approval of a call.
func isQuestion(reason string) bool { return reason != "" && reason != "tool_call" }

// answerOf converts typed text to the content of an answer. For a question it is JSON that fits the
// schema, or only the value of the one required member; for an approval the text is the result of
// the call.
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

// valueOf converts text to a value of a JSON Schema type; "" accepts any JSON, else text.
func valueOf(kind, text string) any {
	if kind == "string" || !json.Valid([]byte(text)) {
		return text
	}
	return json.RawMessage(text)
}

// onlyMember returns the one required member of the schema and its type; name is empty if the
// schema requires anything else.
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

// answerForm describes the expected answer: the one required member, or the schema; "" means any.
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

// answerPrompt returns the prompt for an answer that fits the schema.
func answerPrompt(schema json.RawMessage) string {
	switch name, kind := onlyMember(schema); {
	case kind != "":
		return line(name, 40) + " (" + line(kind, 40) + "): "
	case name != "" || len(schema) == 0:
		return "The answer: "
	}
	return "The answer, as JSON that fits " + line(string(schema), longest) + ": "
}
