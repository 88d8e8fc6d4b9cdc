package runs_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/runs"
)

// TestCanonicalDigest: arguments are equal if they are the same JSON value. Ambiguous JSON equals
// only itself.
func TestCanonicalDigest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b             string
		wantEqualDigests bool
	}{
		"order and space":    {`{"a":1,"b":[{"c":"x","d":null}]}`, "{ \"b\": [ {\"d\":null, \"c\":\"\\u0078\"} ],\n\"a\":1 }", true},
		"a list's order":     {`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		"another number":     {`{"a":1}`, `{"a":1.0}`, false},
		"a large number":     {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		"a number's text":    {`{"a":1}`, `{"a":"1"}`, false},
		"a member twice":     {`{"a":1,"a":2}`, `{"a":2}`, false},
		"half a character":   {`{"a":"\ud800"}`, `{"a":"\ud801"}`, false},
		"more than one text": {`{"a":1}`, `{"a":1}{"a":2}`, false},
		"no JSON":            {`add`, `add `, false},
		"no JSON again":      {`add`, `add`, true},
		"too deep":           {strings.Repeat("[", 200) + strings.Repeat("]", 200), strings.Repeat("[", 200) + " " + strings.Repeat("]", 200), false},
	} {
		if got := runs.CanonicalDigest(c.a) == runs.CanonicalDigest(c.b); got != c.wantEqualDigests {
			t.Errorf("%s: equal: got %v, want %v", name, got, c.wantEqualDigests)
		}
	}
}
