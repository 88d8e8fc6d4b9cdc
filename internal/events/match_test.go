package events

import (
	"encoding/json"
	"testing"
)

// TestMatches: values are equal as JSON values; numbers are compared exactly, whatever their form.
func TestMatches(t *testing.T) {
	t.Parallel()
	const data = `{"id":12345678901234567890,"sum":5.0,"ok":true,"none":null,"name":"<a>","order":{"id":"x"},"list":[1],"zero":-0.0,"large":1e21}`
	for match, want := range map[string]bool{
		`{}`:                          true,
		`{"id":12345678901234567890}`: true,
		`{"id":12345678901234567891}`: false,
		`{"sum":5}`:                   true,
		`{"sum":5e0}`:                 true,
		`{"zero":0,"large":1000000000000000000000}`: true,
		`{"large":1000000000000000000001}`:          false,
		`{"sum":"5"}`:                               false,
		`{"ok":true,"none":null}`:                   true,
		`{"ok":false}`:                              false,
		`{"missing":null}`:                          false,
		`{"name":"<a>","order.id":"x"}`:             true,
		`{"order.id.more":"x"}`:                     false,
		`{"order":"x"}`:                             false,
		`{"list":[1]}`:                              false,
		`{"name":"<a>","order.id":"other"}`:         false,
	} {
		var pattern map[string]any
		decoded, _ := decodeExact(json.RawMessage(match)).(map[string]any)
		pattern = decoded
		values, err := canonicalMatch(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := matches(values, decodeExact(json.RawMessage(data))); got != want {
			t.Errorf("%s: matches = %v, want %v", match, got, want)
		}
	}
	if matches(map[string]json.RawMessage{"a": json.RawMessage("1")}, decodeExact(nil)) {
		t.Error("an event without data has a value")
	}
}
