package wire

import (
	"encoding/json"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
)

// Opening is the user message that a provider inserts before a conversation that begins with an
// assistant message, which some APIs reject.
//
// This file adapts earlier messages to an API's constraints. Another provider's model may have
// written them, in a form that this API rejects. Without adaptation, one such message would make
// every later request of the conversation fail.
const Opening = "(The conversation begins with you.)"

// Blank reports whether text consists of white space. Some APIs reject text parts that are blank.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }

// Object converts the arguments of a call for an API that accepts only a JSON object. Text that is
// no JSON object becomes the member "arguments" of an object, so that the model sees its mistake.
func Object(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	if text == "" {
		return json.RawMessage(`{}`)
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	object, _ := json.Marshal(map[string]string{"arguments": arguments}) // cannot fail
	return object
}

// notNameable matches the characters that [Nameable] replaces.
var notNameable = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// maxName is the maximum length of a name or an ID, in bytes.
const maxName = 64

// Nameable converts a name or an ID to the alphabet and length that every API accepts. It is
// deterministic, so calls and results still match. A changed name gets a hash as suffix, so
// different names stay different.
func Nameable(name string) string {
	fit := notNameable.ReplaceAllString(name, "_")
	if fit == name && name != "" && len(name) <= maxName {
		return name
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // cannot fail
	mark := "_" + strconv.FormatUint(uint64(sum.Sum32()), 36)
	return fit[:min(len(fit), maxName-len(mark))] + mark
}
