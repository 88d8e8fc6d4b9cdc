package agui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// validJSON returns an error if raw is not exactly one JSON value in UTF-8.
//
// This file splits JSON text into members and elements without decoding it. All functions below
// rely on text that validJSON has accepted. They do not check the syntax, and can panic on other
// text.
func validJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("malformed JSON: not UTF-8")
	}
	if json.Valid(raw) {
		return nil
	}
	var discard json.RawMessage
	err := json.Unmarshal(raw, &discard)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("malformed JSON at byte %d: %s", syntax.Offset, syntax.Error())
	}
	return errors.New("malformed JSON")
}

// member is one member of an object that is being decoded.
type member struct {
	name  []byte // unescaped
	value []byte // JSON text
	taken bool   // a visitor has asked for it, so it is not unknown
}

// appendMembers appends the members of the object raw, in order.
func appendMembers(dst []member, raw []byte) []member {
	i := skipSpace(raw, 1)
	for raw[i] != '}' {
		end := skipString(raw, i)
		name := stringBytes(raw[i:end])
		i = skipSpace(raw, skipSpace(raw, end)+1)
		end = skipValue(raw, i)
		dst = append(dst, member{name: name, value: raw[i:end]})
		i = skipComma(raw, end)
	}
	return dst
}

// eachElement calls f for each element of the array raw, until f returns false.
func eachElement(raw []byte, f func(i int, value []byte) bool) {
	i := skipSpace(raw, 1)
	for n := 0; raw[i] != ']'; n++ {
		end := skipValue(raw, i)
		if !f(n, raw[i:end]) {
			return
		}
		i = skipComma(raw, end)
	}
}

// skipSpace returns the index of the first character at or after i that is no space.
func skipSpace(raw []byte, i int) int {
	for i < len(raw) && isSpace(raw[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// skipComma returns the index of the next element, or of the closing bracket.
func skipComma(raw []byte, i int) int {
	i = skipSpace(raw, i)
	if raw[i] == ',' {
		return skipSpace(raw, i+1)
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the index after the value that begins at i.
func skipValue(raw []byte, i int) int {
	switch raw[i] {
	case '"':
		return skipString(raw, i)
	case '{', '[':
		return skipNested(raw, i)
	}
	for i < len(raw) && !isSpace(raw[i]) && raw[i] != ',' && raw[i] != ']' && raw[i] != '}' {
		i++
	}
	return i
}

// skipNested returns the index after the object or array that begins at i.
func skipNested(raw []byte, i int) int {
	depth := 0
	for {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
}

// stringBytes decodes a JSON string. A string without escapes aliases quoted.
func stringBytes(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // cannot fail: valid JSON
	return []byte(s)
}

// appendCompact appends raw without insignificant space. Unlike json.Compact it needs no
// bytes.Buffer.
func appendCompact(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] == '"' {
			end := skipString(raw, i)
			dst = append(dst, raw[i:end]...)
			i = end
			continue
		}
		if !isSpace(raw[i]) {
			dst = append(dst, raw[i])
		}
		i++
	}
	return dst
}

// trimmed returns raw without surrounding space.
func trimmed(raw []byte) []byte { return bytes.Trim(raw, " \n\r\t") }

// isNull reports whether a value without surrounding space is null.
func isNull(raw []byte) bool { return len(raw) == 4 && raw[0] == 'n' }

// describe returns the type of a JSON value, for error messages.
func describe(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
