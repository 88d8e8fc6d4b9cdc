package wire

import (
	"encoding/json"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"
)

// What other providers' models have said may be in no form that a provider
// takes, and one such message would end the conversation for good. These make
// it fit.

// Opening stands for the user where a conversation begins with an answer, which
// some APIs refuse.
const Opening = "(The conversation begins with you.)"

// Blank reports whether text says nothing; some APIs refuse parts of such text.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }

// Object returns the arguments of a call for an API that takes an object only. What
// a model wrote instead becomes a member of one, so that it sees its mistake.
func Object(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	if text == "" {
		return json.RawMessage(`{}`)
	}
	if text[0] == '{' && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	object, _ := json.Marshal(map[string]string{"arguments": arguments}) // text always has a JSON form
	return object
}

var notNameable = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

const maxName = 64

// Nameable makes a name or an id fit an alphabet that every API knows: the same
// for the same, and another for another.
func Nameable(name string) string {
	fit := notNameable.ReplaceAllString(name, "_")
	if fit == name && name != "" && len(name) <= maxName {
		return name
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // a hash takes anything
	mark := "_" + strconv.FormatUint(uint64(sum.Sum32()), 36)
	return fit[:min(len(fit), maxName-len(mark))] + mark
}
