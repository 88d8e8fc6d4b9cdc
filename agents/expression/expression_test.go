package expression_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents/expression"
)

// variables returns the variables of the expressions.
func variables() map[string]any {
	return map[string]any{
		"input": expression.Decode(json.RawMessage(`{"text":"hi"}`)), "messages": nil, "caller": nil,
		"state": expression.Decode(json.RawMessage(`{"n":41,"f":1.5,"big":9007199254740993,"huge":1e300,"text":"secret","list":[1,"a",null],"object":{"a":{"b":true}}}`)),
		"steps": map[string]any{"a": int64(1)}, "item": "x",
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ template, want string }{
		{``, `""`},
		{`plain`, `"plain"`},
		{`${state.n}`, `41`},
		{`${state.n + 1}`, `42`},
		{`${state.f + 1.0}`, `2.5`},
		{`${state.big}`, `9007199254740993`},
		{`${state.huge}`, `1e+300`},
		{`${state.list}`, `[1,"a",null]`},
		{`${state.object}`, `{"a":{"b":true}}`},
		{`${{"a": [1, {"}": "}"}]}}`, `{"a":[1,{"}":"}"}]}`},
		{`${null}`, `null`},
		{`a ${state.n} b ${item}${state.list} <&>`, `"a 41 b x[1,\"a\",null] <&>"`},
		{` ${state.n}`, `" 41"`},
		{`${state.n}${state.n}`, `"4141"`},
		{`$${state.n} ${state.n} $5 {} }`, `"${state.n} 41 $5 {} }"`},
		{`${'}' + "\"}" + r"\" + '''}'''}`, `"}\"}\\}"`},
		{`${["a", "b"].join("-").upperAscii()}`, `"A-B"`},
		{`${duration("90s")} ${timestamp("2026-01-02T03:04:05Z")} ${b"ab"} ${2u}`, `"1m30s 2026-01-02T03:04:05Z YWI= 2"`},
		{`${steps.a} ${steps["a"]}`, `"1 1"`},
	} {
		parsed, err := expression.ParseTemplate(tt.template, "item")
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		value, err := parsed.Value(variables())
		if err != nil {
			t.Errorf("%s: %v", tt.template, err)
			continue
		}
		raw, err := expression.Encode(value)
		if diff := cmp.Diff(tt.want, string(raw)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.template, err, diff)
		}
	}
}

// TestErrorsHaveNoContent: errors of expressions contain no values, because callers without
// access to the values may see them.
func TestErrorsHaveNoContent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, want string }{
		{`state.missing`, `there is no key "missing"`},
		{`state.object.a.c.d`, `there is no key "c"`},
		{`state.object[state.text]`, `a key is missing`},
		{`state.n + 1.0`, `an operator or function does not fit its values`},
		{`state.list[7]`, `an index is out of bounds`},
		{`int(state.text)`, `the expression cannot be evaluated`},
		{`timestamp(state.text)`, `the expression cannot be evaluated`},
		{`state.n / 0`, `division by zero`},
		{`9223372036854775807 + state.n`, `a number is too large`},
		{`0.0 / 0.0`, `the value is not a finite number`},
		{`{1: 2}`, `a key is not a string`},
		{`type(state.n)`, `a type has no JSON form`},
		{`state.list.map(x, state.list.map(y, state.list.map(z, [1, 2, 3, 4, 5, 6].map(a, [1, 2, 3, 4, 5, 6].map(b, [1, 2, 3, 4, 5, 6].map(c, [1, 2, 3, 4, 5, 6].map(d, [1, 2, 3, 4, 5, 6, 7, 8, 9])))))))`, `the expression is too costly`},
	} {
		e, err := expression.Compile(tt.source)
		if err != nil {
			t.Errorf("%s: %v", tt.source, err)
			continue
		}
		if value, err := e.Value(variables()); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, %v, want %s", tt.source, value, err, tt.want)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]string{
		`1`:                                nil,
		`steps.b.c + steps["a"] + steps.b`: {"a", "b"},
		`has(steps.a) ? steps.c.map(x, steps.d) : steps`: {"a", "c", "d"},
		`state.steps.a`: nil,
		`size(steps)`:   nil,
	} {
		e, err := expression.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, e.Steps()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

func TestInvalidExpressions(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`stat.x`:                   "undeclared reference to 'stat'",
		`1 +`:                      "Syntax error",
		``:                         "Syntax error",
		strings.Repeat("1+", 3000): "more than 4096 bytes",
		`"a" + 1`:                  "found no matching overload",
	} {
		if _, err := expression.Compile(source); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20s: %v, want %s", source, err, want)
		}
	}
	// A compiled expression is not shared with environments that have fewer variables.
	if _, err := expression.Compile("only", "only"); err != nil {
		t.Error(err)
	}
	if _, err := expression.Compile("only"); err == nil {
		t.Error("Compile of an unknown variable: got no error, want one")
	}
}

// FuzzTemplate checks that any text is a template or an error, and that a text without ${ evaluates
// to itself.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"", "a", "${", "${}", "$${", "$$${1}", "${1}", "${'", `${"\`, "${'''}", `${r"\"}`, "${{}}", "${state.n}}", "a${item}b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := expression.ParseTemplate(text, "item")
		if err != nil {
			return
		}
		value, err := parsed.Text(variables())
		if err == nil && !strings.Contains(text, "${") && value != text {
			t.Errorf("template %q: got %q, want the same text", text, value)
		}
		if escaped := strings.ReplaceAll(text, "${", "$${"); !strings.Contains(text, "$$") {
			again, err := expression.ParseTemplate(escaped, "item")
			if err != nil {
				t.Fatalf("%q: %v", escaped, err)
			}
			if got, _ := again.Text(nil); got != text {
				t.Errorf("escaped template %q: got %q, want %q", escaped, got, text)
			}
		}
	})
}
