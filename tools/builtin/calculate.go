package builtin

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/parser/lexer"

	"github.com/perdure/perdure/tools"
)

const maxExpression = 1000

// calculation are the arguments of calculate.
type calculation struct {
	Expression string `json:"expression" jsonschema:"for example (17.5 + 4) * 3 or round(1000 * 1.05**10, 2)"`
}

// Calculate returns the tool calculate, which evaluates an arithmetic expression: + - * / %, ** or
// ^ for powers, parentheses, the constants pi and e, and the functions abs, ceil, cos, exp, floor,
// ln, log10, max, min, round, sin, sqrt, tan and trunc. Angles are in radians.
//
// Whole numbers are exact up to 308 digits, and overflow beyond. Fractions are exact while
// numerator and denominator are that short. Other numbers, such as roots, have the precision and
// the range of a float64.
func Calculate() tools.Tool {
	return tools.Func("calculate",
		"Evaluates an arithmetic expression exactly. Knows + - * / %, ** for powers, parentheses, pi, e and the functions "+
			functionNames()+". Angles are in radians. No variables, no units, no thousands separators.",
		func(_ context.Context, in calculation) (string, error) { return calculate(in.Expression) },
		tools.Idempotent(), tools.Timeout(5*time.Second))
}

// calculate parses the expression with the library, and never executes it there: its own evaluator
// knows arithmetic only. The library's integers also wrap around.
func calculate(expression string) (string, error) {
	if err := checkExpression(expression); err != nil {
		return "", err
	}
	expression = widen(expression)
	tree, err := parser.Parse(expression)
	if err != nil {
		return "", parseProblem(err)
	}
	value, err := evaluator{source: expression}.evaluate(tree.Node)
	if err != nil {
		return "", err
	}
	return format(value), nil
}

// foreign matches characters that arithmetic does not need, such as quotes and brackets, which
// begin other parts of the library's language.
var foreign = regexp.MustCompile(`[^0-9A-Za-z_.,+\-*/%^()\s]`)

func checkExpression(expression string) error {
	if strings.TrimSpace(expression) == "" {
		return errors.New("/expression: is empty")
	}
	if len(expression) > maxExpression {
		return fmt.Errorf("/expression: longer than %d characters", maxExpression)
	}
	if found := foreign.FindString(expression); found != "" {
		return fmt.Errorf("/expression: %q is not allowed; only numbers, + - * / %% ** ( ) and functions are", found)
	}
	// The library treats these as comments: 7 // 2 would be 7.
	for _, comment := range []string{"//", "/*"} {
		if strings.Contains(expression, comment) {
			return fmt.Errorf("/expression: %s is no operator; use floor(a / b) for a whole quotient", comment)
		}
	}
	return nil
}

// widen adds a decimal point to whole numbers that are too long for the parser. The evaluator reads
// them as they are written.
func widen(expression string) string {
	tokens, err := lexer.Lex(file.NewSource(expression))
	if err != nil {
		return expression // the parser reports the mistake
	}
	var b strings.Builder
	last := 0
	for _, token := range tokens {
		if token.Kind == lexer.Number && wholeNumber.MatchString(token.Value) {
			b.WriteString(expression[last:token.To] + ".")
			last = token.To
		}
	}
	return b.String() + expression[last:]
}

// wholeNumber matches whole numbers that an int64 might not hold.
var wholeNumber = regexp.MustCompile(`^[0-9_]{19,}$`)

// parseProblem keeps the message and the position of a parser's error, without its drawing.
func parseProblem(err error) error {
	if problem := (*file.Error)(nil); errors.As(err, &problem) {
		return fmt.Errorf("/expression: %s at character %d", problem.Message, problem.Column+1)
	}
	return fmt.Errorf("/expression: %w", err)
}
