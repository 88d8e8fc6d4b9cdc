package agui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestValuesAreBounded: the values of a text are counted, whatever it has in strings and between
// values, and the error names the member that has too many.
func TestValuesAreBounded(t *testing.T) {
	t.Parallel()
	list := func(entry string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
	}
	for name, tt := range map[string]struct{ text, pointer string }{
		"numbers":           {list("0", MaxValues), ""},
		"lists":             {`{"a/b":` + list("[ ]", MaxValues-1) + `}`, "/a~1b"},
		"objects":           {`{"a":[0],"b":` + list(`{"x" : 1}`, MaxValues/2) + `}`, "/b"},
		"members":           {`{"a":0` + strings.Repeat(`,"b":0`, MaxValues-1) + `}`, ""},
		"nested lists":      {`{"a":` + strings.Repeat("[", MaxValues), "/a"},
		"entries of a list": {`["a",` + list("0", MaxValues) + `]`, ""},
	} {
		err, ok := errors.AsType[*DecodeError](CheckValues([]byte(tt.text)))
		if !ok || err.Pointer != tt.pointer || !strings.Contains(err.Detail, fmt.Sprint(MaxValues)) {
			t.Errorf("%s: error = %v, want one with the pointer %q", name, err, tt.pointer)
		}
	}
	for name, text := range map[string]string{
		"numbers":       list("0", MaxValues-1),
		"empty lists":   list("[ ]", MaxValues-1),
		"empty objects": list("{}", MaxValues-1),
		"members":       `{"a":0` + strings.Repeat(`,"b":0`, MaxValues-2) + `}`,
		"text":          `{"a":"` + strings.Repeat(`,[{\"`, MaxValues) + `"}`,
		"unterminated":  `["` + strings.Repeat(",[{", MaxValues),
	} {
		if err := CheckValues([]byte(text)); err != nil {
			t.Errorf("%s: error = %v, want none", name, err)
		}
	}
}
