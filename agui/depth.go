package agui

import (
	"bytes"
	"fmt"
)

// MaxDepth is the maximum nesting of objects and arrays in a value that the protocol leaves open:
// state, parameters, metadata. encoding/json decodes at most 10,000 levels. Perdure stores such
// values inside other documents, so a value near that limit could be received but not read again.
const MaxDepth = 512

// tooDeep is the detail of errors about MaxDepth.
var tooDeep = fmt.Sprintf("is nested deeper than %d levels", MaxDepth)

// TooDeep reports whether a JSON value exceeds MaxDepth. The value may be invalid JSON.
func TooDeep(value []byte) bool {
	_, deep := deepMember(value)
	return deep
}

// deepMember searches raw, which may be invalid JSON, for a value that exceeds MaxDepth. name is
// the member of the outermost object that contains the value, or "".
func deepMember(raw []byte) (name string, deep bool) {
	// A cheap upper bound of the depth, which is sufficient for nearly all values.
	if bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) <= MaxDepth {
		return "", false
	}
	depth := 0
	var last []byte // last string at depth 1: the member's name, if a nested value follows
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			end := stringEnd(raw, i)
			if depth == 1 {
				last = raw[i:end]
			}
			i = end - 1
		case '[', '{':
			if depth++; depth > MaxDepth {
				return memberName(last), true
			}
		case ']', '}':
			depth--
		}
	}
	return "", false
}

// stringEnd is skipString for text in which the string may be unterminated.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(raw))
}

// memberName returns a member's name for a JSON pointer, or "" if it is too long: the sender
// chooses the name.
func memberName(quoted []byte) string {
	const longest = 100
	if len(quoted) < 2 || len(quoted) > longest {
		return ""
	}
	return string(stringBytes(quoted))
}
