package remote

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxQuestion bounds a question that is shown as JSON, in bytes.
const maxQuestion = 1000

// Question returns what people are asked: the message of the interrupt or, as most frameworks set none,
// the value with which the agent has interrupted itself. Of an object that is the text of its usual
// member, or else its JSON. "" = the interrupt does not say.
func (i Interrupt) Question() string {
	if i.Interrupt.Message != "" {
		return i.Interrupt.Message
	}
	for _, path := range [][]string{
		{"langgraph", "raw"}, {"mastra", "suspendPayload"},
		{"remote", "suspendPayload"}, {"remote", "__copilotkit_interrupt_value__"}, {"remote"},
	} {
		if value := member(i.Interrupt.Metadata[path[0]], path[1:]...); value != nil {
			return textOf(value)
		}
	}
	return ""
}

// member returns a member of a JSON object, by its path; nil = there is none.
func member(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return nil
		}
		raw = members[name]
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}

// textOf returns a value as a text for people.
func textOf(value json.RawMessage) string {
	value = unquote(value)
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	for _, name := range []string{"message", "question", "prompt", "title", "text"} {
		if json.Unmarshal(member(value, name), &text) == nil && text != "" {
			return text
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return ""
	}
	if compact.Len() > maxQuestion {
		return strings.ToValidUTF8(compact.String()[:maxQuestion], "") + " …"
	}
	return compact.String()
}
