package agui

import (
	"bytes"
	"fmt"
)

// MaxValues bounds the JSON values of a text that a client sends: objects, lists and everything in
// them, without the names of members. Decoded, a value occupies up to 200 times its bytes, so the
// bound applies before any of them is decoded. maxListEntries bounds each list of an input.
const (
	MaxValues      = 200_000
	maxListEntries = 10_000
)

// CheckValues returns a *DecodeError if a JSON text has more than MaxValues values. Its pointer
// names the member of the outermost object that exceeds the bound. The text may be invalid JSON.
// CheckValues allocates nothing for a text within the bound.
func CheckValues(raw []byte) error {
	// Each value but the outermost one follows a comma or an opening bracket. Few texts have so many
	// of these characters, in strings or not, that their values have to be counted.
	most := 1 + bytes.Count(raw, []byte{','}) + bytes.Count(raw, []byte{'['}) + bytes.Count(raw, []byte{'{'})
	if most <= MaxValues {
		return nil
	}
	values, depth := 1, 0
	var last []byte // last string at depth 1: in an object, the name of the member whose value is nested
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			end := stringEnd(raw, i)
			if depth == 1 {
				last = raw[i:end]
			}
			i = end - 1
		case '[', '{':
			depth++
			if next := skipSpace(raw, i+1); next < len(raw) && raw[next] != ']' && raw[next] != '}' {
				values++
			}
		case ']', '}':
			depth--
		case ',':
			values++
		}
		if values > MaxValues {
			err := &DecodeError{Detail: fmt.Sprintf("exceeds the %d values that a JSON text may have in all of its lists and objects", MaxValues)}
			if name := memberName(last); name != "" && depth > 1 && trimmed(raw)[0] == '{' {
				err.Pointer = location{}.member(name)
			}
			return err
		}
	}
	return nil
}
