package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits for arguments: size in bytes, levels of nesting, and problems in an error.
const (
	maxArguments = 1 << 20
	maxDepth     = 100
	maxProblems  = 8
)

// Problem is one mistake in the arguments of a call.
type Problem struct {
	Pointer string // JSON pointer (RFC 6901) of the argument; "" is the whole object
	Reason  string // what was expected
}

// ArgumentsError is the error of arguments that violate their schema. Its text is for the model,
// which must correct them.
type ArgumentsError struct {
	Problems []Problem // at least one, at most eight
}

// Error implements error.
func (e *ArgumentsError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		if p.Pointer == "" {
			lines = append(lines, p.Reason)
			continue
		}
		lines = append(lines, p.Pointer+": "+p.Reason)
	}
	return "invalid arguments: " + strings.Join(lines, "; ")
}

// refused returns an error with one problem.
func refused(pointer, format string, args ...any) *ArgumentsError {
	return &ArgumentsError{Problems: []Problem{{Pointer: pointer, Reason: fmt.Sprintf(format, args...)}}}
}

// decodeArguments decodes a JSON object strictly. encoding/json accepts duplicate members and uses
// the last. An approver could then see other arguments than the tool receives.
func decodeArguments(raw []byte) (map[string]any, error) {
	value, err := decodeValue(raw)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, refused("", "expected a JSON object, got %s", jsonType(value))
	}
	return object, nil
}

// decodeValue decodes a JSON value with the same strictness: no duplicate members, valid UTF-8,
// limited size, depth and numbers.
func decodeValue(raw []byte) (any, error) {
	if err := checkText(raw); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return (&argumentReader{decoder: decoder}).value()
}

// checkText checks the size, the UTF-8 and the syntax of JSON text.
func checkText(raw []byte) error {
	if len(raw) > maxArguments {
		return refused("", "more than %d bytes", maxArguments)
	}
	if !utf8.Valid(raw) {
		return refused("", "not valid UTF-8")
	}
	var text json.RawMessage
	err := json.Unmarshal(raw, &text)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return refused("", "not valid JSON at byte %d: %v", syntax.Offset, syntax)
	}
	if err != nil {
		return refused("", "not valid JSON: %v", err)
	}
	return nil
}

// argumentReader decodes a JSON value token by token. Its text must have passed checkText.
type argumentReader struct {
	decoder *json.Decoder
	path    []string // of the current value, for errors
}

// value decodes the next value.
func (r *argumentReader) value() (any, error) {
	if len(r.path) > maxDepth {
		return nil, refused("", "nested deeper than %d levels", maxDepth)
	}
	token, err := r.decoder.Token()
	if err != nil {
		return nil, refused(pointer(r.path), "not valid JSON: %v", err)
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return r.object()
		}
		return r.array()
	// The validator calculates with exact fractions, in which 1e999999 has a million digits.
	case json.Number:
		// The validator calculates with exact fractions: 1e999999 would take a million digits.
		if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
			return nil, refused(pointer(r.path), "the number is out of range")
		}
		return token, nil
	default:
		return token, nil
	}
}

// object decodes an object after its opening brace.
func (r *argumentReader) object() (any, error) {
	object := map[string]any{}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return nil, refused(pointer(r.path), "not valid JSON: %v", err)
		}
		key, _ := token.(string)
		value, err := r.member(key)
		if err != nil {
			return nil, err
		}
		if _, ok := object[key]; ok {
			return nil, refused(pointer(append(r.path, key)), "given twice")
		}
		object[key] = value
	}
	_, err := r.decoder.Token()
	return object, err
}

// array decodes an array after its opening bracket.
func (r *argumentReader) array() (any, error) {
	array := []any{}
	for r.decoder.More() {
		value, err := r.member(strconv.Itoa(len(array)))
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	_, err := r.decoder.Token()
	return array, err
}

// member decodes the value of a member or element with that name.
func (r *argumentReader) member(name string) (any, error) {
	r.path = append(r.path, name)
	value, err := r.value()
	r.path = r.path[:len(r.path)-1]
	return value, err
}

// pointerEscapes escapes a token of a JSON pointer (RFC 6901, section 3).
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns the JSON pointer of a path.
func pointer(path []string) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(token))
	}
	return b.String()
}

// jsonType returns the JSON type of a decoded value.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// typeProblem converts an error of encoding/json about a value that matches the schema but not the
// Go type, such as 1e3 for an int8.
func typeProblem(err error) *ArgumentsError {
	mismatch := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &mismatch) {
		return refused("", "%v", err)
	}
	path := slices.DeleteFunc(strings.Split(mismatch.Field, "."), func(s string) bool { return s == "" })
	return refused(pointer(path), "%s does not fit %s", mismatch.Value, mismatch.Type)
}
