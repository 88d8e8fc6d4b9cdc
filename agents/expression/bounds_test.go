package expression_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents/expression"
)

// hostile are expressions whose value or work is far larger than their text.
var hostile = []string{
	`"aaaaaaaaaaaaaaaa"` + strings.Repeat(`.replace("a", "`+strings.Repeat("a", 900)+`")`, 4),
	`"aaaa"` + strings.Repeat(`.replace("", "`+strings.Repeat("b", 900)+`")`, 4),
	`[state.text]` + strings.Repeat(`.map(a, a + a)`, 60) + `[0]`,
	`[state.text]` + strings.Repeat(`.map(a, a.replace(a, a + a + a))`, 60) + `[0]`,
	`[[1]]` + strings.Repeat(`.map(a, a + a)`, 60) + `[0]`,
	`[[1]]` + strings.Repeat(`.map(a, a + a)`, 60) + `[0].size() > 0`,
	`[[1]]` + strings.Repeat(`.map(a, a + a)`, 60) + `.exists(a, a == a)`,
	`[[1]]` + strings.Repeat(`.map(a, [a, a])`, 60) + `[0]`,
	`[[1]]` + strings.Repeat(`.map(a, [a, a])`, 60) + `.exists(a, a == a)`,
	`[[1]]` + strings.Repeat(`.map(a, [a, a])`, 60) + `.exists(a, a in [a, a])`,
	`[[1]]` + strings.Repeat(`.map(a, {"x": a, "y": a})`, 60) + `.exists(a, a != a)`,
	`["` + strings.Repeat("x", 1000) + `"]` + strings.Repeat(`.map(a, [a, a, a, a, a, a, a, a].join())`, 20) + `[0]`,
	`[["` + strings.Repeat("x", 1000) + `"]]` + strings.Repeat(`.map(a, a + a)`, 40) + `[0].join("y")`,
	`"%.999999999f".format([1.0])`,
	`["%.", "f"].map(a, "%s%s").join() + "%.999999999e".format([1.0])`,
	`[["` + strings.Repeat("x", 1000) + `"]]` + strings.Repeat(`.map(a, [a, a])`, 40) + `.map(a, "%s".format([a]))`,
	`[["x"]]` + strings.Repeat(`.map(a, a + a)`, 20) + `.map(a, a.join().split(""))` + strings.Repeat(`.map(a, a.join().split(""))`, 30),
	`[1,2,3,4,5,6,7,8,9,10]` + strings.Repeat(`.map(x, [1,2,3,4,5,6,7,8,9,10]`, 8) + strings.Repeat(`)`, 8),
}

// TestHostileExpressionsFail: an expression that would need much memory or time fails early.
func TestHostileExpressionsFail(t *testing.T) {
	const maxAllocated = 256 << 20 // all allocations of one evaluation, most of which are garbage at once
	for _, source := range hostile {
		e, err := expression.Compile(source)
		if err != nil {
			t.Errorf("%.60s: %v", source, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = e.Value(variables())
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxAllocated {
			t.Errorf("%.60s: allocated %d bytes, want at most %d", source, allocated, maxAllocated)
		}
		if err == nil && !strings.Contains(source, ".size()") {
			t.Errorf("%.60s: no error, want one", source)
		}
	}
}

// TestBoundedFunctions: the bounded functions work like those of CEL's string extension.
func TestBoundedFunctions(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`"banana".replace("a", "oo")`:              `"boonoonoo"`,
		`"banana".replace("a", "", 2)`:             `"bnna"`,
		`"banana".replace("a", "x", 0)`:            `"banana"`,
		`"banana".replace("a", "x", -5)`:           `"bxnxnx"`,
		`"ab".replace("", "-")`:                    `"-a-b-"`,
		`["a", "", "b"].join(",")`:                 `"a,,b"`,
		`["", ""].join(",")`:                       `","`,
		`[].join("x")`:                             `""`,
		`"%s is %d, %.2f".format(["x", 3, 1.5])`:   `"x is 3, 1.50"`,
		`[1, 2] == [1, 2] && {"a": 1} != {"a": 2}`: `true`,
		`2 in [1, 2] && "a" in {"a": 1}`:           `true`,
		`dyn(1) == 1.0`:                            `true`,
	} {
		e, err := expression.Compile(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		value, err := e.Value(variables())
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if raw, err := expression.Encode(value); string(raw) != want || err != nil {
			t.Errorf("%s = %s (%v), want %s", source, raw, err, want)
		}
	}
}

// FuzzHostileExpression: no expression of the maximum length crashes or exhausts the process.
func FuzzHostileExpression(f *testing.F) {
	for _, source := range hostile {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		e, err := expression.Compile(source)
		if err != nil {
			return // Compile refuses it
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = e.Value(variables())
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<30 {
			t.Errorf("allocated %d bytes, want at most 1 GiB", allocated)
		}
	})
}
