package runs

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// CanonicalDigest returns a digest of arguments, or of an answer, that is the same for equal JSON values,
// whatever the order of members and the white space. Numbers are compared as they are written. Invalid JSON,
// invalid UTF-8 and repeated members equal only themselves, because a tool may read them
// differently from this function.
func CanonicalDigest(arguments string) string {
	canonical, err := canonicalJSON(arguments)
	if err != nil {
		canonical = arguments
	}
	return DigestArgs(canonical)
}

// maxDepth bounds the nesting of arguments with a canonical form. Deeper ones equal only
// themselves.
const maxDepth = 100

// errAmbiguous tells that JSON has no canonical form here.
var errAmbiguous = errors.New("runs: the JSON is ambiguous")

// canonicalJSON returns JSON with sorted members and without white space.
func canonicalJSON(text string) (string, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	value, err := canonicalValue(d, 0)
	if err != nil {
		return "", err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", errAmbiguous
	}
	encoded, err := json.Marshal(value) // sorts the members
	return string(encoded), err
}

// canonicalValue reads one value. It walks tokens, because json.Unmarshal would take the last of
// repeated members.
func canonicalValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	// A string of the decoder with U+FFFD may have been invalid UTF-8.
	case string:
		if strings.ContainsRune(t, utf8.RuneError) {
			return nil, errAmbiguous
		}
	case json.Delim:
		if depth == maxDepth {
			return nil, errAmbiguous
		}
		if t == '{' {
			return canonicalObject(d, depth+1)
		}
		return canonicalArray(d, depth+1)
	}
	return token, nil
}

// canonicalObject reads the members of an object, whose opening brace is read, and the closing
// brace.
func canonicalObject(d *json.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for d.More() {
		name, err := canonicalValue(d, depth)
		if err != nil {
			return nil, err
		}
		key, ok := name.(string)
		if _, isRepeated := members[key]; !ok || isRepeated {
			return nil, errAmbiguous
		}
		if members[key], err = canonicalValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return members, err
}

// canonicalArray reads the elements of a list, whose opening bracket is read, and the closing
// bracket.
func canonicalArray(d *json.Decoder, depth int) (any, error) {
	elements := []any{}
	for d.More() {
		element, err := canonicalValue(d, depth)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	_, err := d.Token()
	return elements, err
}
