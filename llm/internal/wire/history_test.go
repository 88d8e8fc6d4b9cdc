package wire

import (
	"strings"
	"testing"
)

func TestObject(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"":                `{}`,
		" \n":             `{}`,
		` {"x":1.0} `:     `{"x":1.0}`,
		`{"x`:             `{"arguments":"{\"x"}`,
		`[1]`:             `{"arguments":"[1]"}`,
		`{"x":1} {"x":2}`: `{"arguments":"{\"x\":1} {\"x\":2}"}`,
	} {
		if got := string(Object(arguments)); got != want {
			t.Errorf("%q is %s, want %s", arguments, got, want)
		}
	}
}

func TestNameable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 65)
	for _, name := range []string{"toolu_01-Ab", strings.Repeat("n", 64)} {
		if got := Nameable(name); got != name {
			t.Errorf("Nameable(%q) = %q, want the same", name, got)
		}
	}
	seen := map[string]string{}
	for _, name := range []string{"functions.get:0", "functions_get:0", "functions_get_0", "", " ", long, long + "n", "é"} {
		got := Nameable(name)
		if got == "" || len(got) > 64 || notNameable.MatchString(got) {
			t.Errorf("Nameable(%q) = %q, want a valid name", name, got)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
	}
}
