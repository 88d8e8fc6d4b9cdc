package cli

import (
	"encoding/json"
	"slices"
)

// isQuestion reports, by the reason of an interrupt, whether it is a question of a tool. Otherwise
// it is the approval of a call.
func isQuestion(reason string) bool { return reason != "" && reason != "tool_call" }

// answerOf converts typed text to the content of an answer. The answer to a question is JSON that
// matches the schema; if the schema is an object with one required member, the value of that member
// suffices. In place of an approval the text is the result of the call.
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

// valueOf converts text to a value of a JSON Schema type. With kind "" the text may be any JSON,
// and is a string if it is no JSON.
func valueOf(kind, text string) any {
	if kind == "string" || !json.Valid([]byte(text)) {
		return text
	}
	return json.RawMessage(text)
}

// onlyMember returns the name and the type of the only required member of a schema; "" if the
// schema is of another form.
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

// answerForm describes the expected answer for a list: the only required member, or the schema; ""
// = any text.
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

// answerPrompt returns the prompt for an answer that must match the schema.
func answerPrompt(schema json.RawMessage) string {
	switch name, kind := onlyMember(schema); {
	case kind != "":
		return oneLine(name, 40) + " (" + oneLine(kind, 40) + "): "
	case name != "" || len(schema) == 0:
		return "The answer: "
	}
	return "The answer, as JSON that fits " + oneLine(string(schema), maxQuotedChars) + ": "
}
