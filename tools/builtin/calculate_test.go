package builtin_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
)

func TestCalculate(t *testing.T) {
	t.Parallel()
	calculate := builtin.Calculate()
	tests := []struct{ expression, want string }{
		{"1 + 2 * 3", "7"},
		{"(1 + 2) * 3", "9"},
		{"6 / 2", "3"},
		{"10 / 4", "2.5"},
		{"0.1 + 0.2", "0.3"},
		{"1/3", "0.3333333333333333"},
		{"1/7*7", "1"},
		{"-2**2", "-4"},
		{"2^3^2", "512"},
		{"2**-1", "0.5"},
		{"2**0.5", "1.4142135623730951"},
		{"0**0", "1"},
		{"1**99999999", "1"},
		{"7 % 3", "1"},
		{"-7 % 3", "-1"},
		{"010 + 1", "11"},
		{"1e3 + 1_000", "2000"},
		{"2**100", "1267650600228229401496703205376"},
		{"9223372036854775807 + 1", "9223372036854775808"},
		{"12345678901234567890 * 98765432109876543210", "1219326311370217952237463801111263526900"},
		{"0.12345678901234567890123 * 10", "1.2345678901234567890123"},
		{"1000 * (1 + 0.05/12)**360", "4467.744314006132"},
		{"(2/3)**700", "5.446514460510651e-124"},
		{"1e-999999", "0"},
		{"sqrt(144) + sqrt(1/4)", "12.5"},
		{"sqrt(2)", "1.4142135623730951"},
		{"round(2.5) + round(-2.5)", "0"},
		{"round(3.14159, 2)", "3.14"},
		{"floor(-1.5)", "-2"},
		{"ceil(-1.5)", "-1"},
		{"trunc(-1.5)", "-1"},
		{"max(1, 3, 2) - min(1, 3, 2)", "2"},
		{"abs(-3)", "3"},
		{"ln(e)", "1"},
		{"log10(1000)", "3"},
		{"cos(0) + sin(0) + tan(0) + exp(0)", "2"},
		{"pi", "3.141592653589793"},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			t.Parallel()
			result := call(t, calculate, map[string]any{"expression": tt.expression})
			if result.IsError || result.Content != tt.want {
				t.Errorf("%s = %q (failed: %t), want %q", tt.expression, result.Content, result.IsError, tt.want)
			}
		})
	}
}

func TestCalculateRefuses(t *testing.T) {
	t.Parallel()
	calculate := builtin.Calculate()
	tests := []struct{ name, expression, want string }{
		{"nothing", "  ", "is empty"},
		{"too long", strings.Repeat("1+", 500) + "1", "longer than 1000"},
		{"division by zero", "1 / (2 - 2)", "division by zero"},
		{"remainder by zero", "1 % 0", "division by zero"},
		{"negative power of zero", "0 ** -1", "division by zero"},
		{"overflow", "2 ** 1024", "too large"},
		{"far overflow", "9 ** 9 ** 9", "too large"},
		{"overflow of a function", "exp(1000)", "too large"},
		{"overflow of a literal", "1e400", "out of range"},
		{"no real number", "sqrt(-1)", "not a real number"},
		{"infinite", "ln(0)", "not a real number"},
		{"fractional remainder", "7.5 % 2", "whole numbers"},
		{"unbalanced", "(1 + 2", "unexpected token EOF"},
		{"floor division is a comment to the parser", "7 // 2", "floor(a / b)"},
		{"comment", "7 /* 2", "not an operator"},
		{"thousands separator", "1,000 + 5", `unexpected token Operator(",") at character 2`},
		{"variable", "x + 1", `unknown name "x"`},
		{"unknown function", "system(1)", `unknown function "system"`},
		{"builtin of the language", "len(1)", `unknown function "len"`},
		{"wrong arity", "sqrt(1, 2)", "does not take 2 arguments"},
		{"string", `"a" + "b"`, "is not allowed"},
		{"member", "pi.x", "only arithmetic"},
		{"range", "1..1000000", "only arithmetic"},
		{"boolean", "not true", "only arithmetic"},
		{"membership", "1 in 2", "only arithmetic"},
		{"declaration", "let a = 1; a", "is not allowed"},
		{"other alphabets", "2 × 3", `"×" is not allowed`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result := call(t, calculate, map[string]any{"expression": tt.expression})
			if !result.IsError || !strings.Contains(result.Content, tt.want) {
				t.Errorf("%s: %q (failed: %t), want a failure with %q", tt.expression, result.Content, result.IsError, tt.want)
			}
		})
	}
}

func FuzzCalculate(f *testing.F) {
	for _, seed := range []string{
		"1 + 2", "2**100 / 3", "round(sqrt(2), 5)", "((((1))))", "9**9**9", "1e-999999", "12345678901234567890.",
		"let a = 1", "max(1,2) % -3", "7 // 2", "-(-1)", "1..2", "not pi", "0x1F + 010",
	} {
		f.Add(seed)
	}
	calculate := builtin.Calculate()
	f.Fuzz(func(t *testing.T, expression string) {
		arguments, err := json.Marshal(map[string]string{"expression": expression})
		if err != nil {
			t.Skip()
		}
		result, err := calculate.Call(t.Context(), tools.Call{Arguments: arguments})
		if err != nil {
			t.Fatalf("%q: %v", expression, err)
		}
		if len(result.Content) > 4096 {
			t.Errorf("%q: size of the result = %d bytes, want at most 4096", expression, len(result.Content))
		}
		if result.IsError {
			if strings.Contains(result.Content, "internal error") {
				t.Errorf("%q: got the panic %v, want none", expression, result.Cause)
			}
			return
		}
		if _, ok := new(big.Rat).SetString(result.Content); !ok {
			t.Errorf("%q = %q, which is no number", expression, result.Content)
		}
	})
}

// call calls a tool.
func call(t *testing.T, tool tools.Tool, arguments map[string]any) tools.Result {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	result, err := tool.Call(t.Context(), tools.Call{ID: "c1", Arguments: raw})
	if err != nil {
		t.Fatal(err)
	}
	return result
}
