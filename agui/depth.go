package agui

import (
	"bytes"
	"fmt"
)

// MaxDepth is how many objects and arrays may lie inside each other in a value that the protocol
// leaves open: state, parameters, metadata. encoding/json reads no more than 10,000 levels, and
// such values are stored inside other documents: what is just acceptable when it comes could not be
// read again.
const MaxDepth = 512

var tooDeep = fmt.Sprintf("is nested deeper than %d levels", MaxDepth)

// TooDeep reports whether a JSON value is nested deeper than MaxDepth. It need not have been
// checked.
func TooDeep(value []byte) bool {
	_, deep := deepMember(value)
	return deep
}

// deepMember looks for what is nested too deep in a text that may be no JSON, and returns the
// member of the outermost object that holds it, if it is in one.
func deepMember(raw []byte) (name string, deep bool) {
	if bytes.Count(raw, []byte{'['})+bytes.Count(raw, []byte{'{'}) <= MaxDepth {
		return "", false
	}
	depth := 0
	var last []byte // string at the first level: the name, if a value with levels of its own follows
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

// stringEnd is skipString for a text in which the string may not end.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(raw))
}

// memberName returns a name that is fit for a pointer, or "": anybody may have written it.
func memberName(quoted []byte) string {
	const longest = 100
	if len(quoted) < 2 || len(quoted) > longest {
		return ""
	}
	return string(stringBytes(quoted))
}
