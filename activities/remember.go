package activities

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// isRemembered reports whether an earlier approval covers a call under a rule.
func isRemembered(approvals []stream.Remembered, tool, rule, arguments string) bool {
	return slices.ContainsFunc(approvals, func(r stream.Remembered) bool {
		return r.Tool == tool && r.Rule == rule && (r.Args == "" || r.Args == canonicalDigest(arguments))
	})
}

// canonicalDigest returns the digest of arguments as a JSON value, whatever the order of members
// and the white space. Numbers are compared as texts. Invalid JSON, invalid UTF-8 and repeated
// members equal only themselves, because a tool may read them differently.
func canonicalDigest(arguments string) string {
	canonical, err := canonicalJSON(arguments)
	if err != nil {
		canonical = arguments
	}
	return runs.DigestArgs(canonical)
}

// maxDepth bounds the nesting of arguments with a canonical form.
const maxDepth = 100

var errAmbiguous = errors.New("activities: JSON has more than one reading")

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

// canonicalValue reads one value. json.Decoder would take the last of repeated members.
func canonicalValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case string:
		if strings.ContainsRune(t, utf8.RuneError) { // the decoder replaces invalid UTF-8 by it
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

func canonicalObject(d *json.Decoder, depth int) (any, error) {
	members := map[string]any{}
	for d.More() {
		name, err := canonicalValue(d, depth)
		if err != nil {
			return nil, err
		}
		key, ok := name.(string)
		if _, twice := members[key]; !ok || twice {
			return nil, errAmbiguous
		}
		if members[key], err = canonicalValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return members, err
}

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
