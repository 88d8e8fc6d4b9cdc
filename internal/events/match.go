package events

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// matches reports whether the data of an event has all values of a pattern. data is decoded with exact
// numbers.
func matches(match map[string]json.RawMessage, data any) bool {
	for path, want := range match {
		got, ok := valueAt(data, path)
		if !ok || want == nil || !bytes.Equal(canonical(got), want) {
			return false
		}
	}
	return true
}

// Matches reports whether the data of an event has all values of a pattern, by their path.
func (e *Event) Matches(match map[string]any) bool {
	values, err := canonicalMatch(match)
	return err == nil && matches(values, decodeExact(e.Data))
}

// valueAt returns the value at a path of member names, joined by dots.
func valueAt(data any, path string) (any, bool) {
	for name := range strings.SplitSeq(path, ".") {
		object, ok := data.(map[string]any)
		if !ok {
			return nil, false
		}
		if data, ok = object[name]; !ok {
			return nil, false
		}
	}
	return data, true
}

// decodeExact decodes JSON with exact numbers; nil = it is invalid.
func decodeExact(data json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

// canonical returns one text for equal values: 5, 5.0 and 5e0 are equal numbers. A list or an object
// has none, because a pattern compares scalars only.
func canonical(value any) []byte {
	switch v := value.(type) {
	case json.Number:
		f, err := v.Float64()
		switch {
		case err != nil:
		case f == 0: // also -0
			return []byte("0")
		case !isExactInteger(v): // without an exponent, as integers
			return strconv.AppendFloat(nil, f, 'f', -1, 64)
		}
	case map[string]any, []any:
		return nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return encoded
}

// isExactInteger reports whether a number is written as an integer, which a float64 might round.
func isExactInteger(n json.Number) bool { return !strings.ContainsAny(n.String(), ".eE") }

// canonicalMatch returns the values of a pattern in the form of canonical.
func canonicalMatch(match map[string]any) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(match)
	if err != nil {
		return nil, err
	}
	values, _ := decodeExact(raw).(map[string]any)
	texts := make(map[string]json.RawMessage, len(values))
	for path, value := range values {
		texts[path] = canonical(value)
	}
	return texts, nil
}
