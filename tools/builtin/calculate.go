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

// maxExpression is the maximum length of an expression, in bytes.
const maxExpression = 1000

// calculation is the type of the arguments of calculate.
type calculation struct {
	Expression string `json:"expression" jsonschema:"for example (17.5 + 4) * 3 or round(1000 * 1.05**10, 2)"`
}

// Calculate returns the tool calculate, which evaluates an arithmetic expression: + - * / %, ** or
// ^ for powers, parentheses, the constants pi and e, and the functions abs, ceil, cos, exp, floor,
// ln, log10, max, min, round, sin, sqrt, tan and trunc. Angles are in radians.
//
// Integers are exact up to 308 digits; a larger one is an error. Fractions are exact while
// numerator and denominator have at most that many digits. Other numbers, such as roots, have the
// precision and the range of a float64.
func Calculate() tools.Tool {
	return tools.Func("calculate",
		"Evaluates an arithmetic expression exactly. Knows + - * / %, ** for powers, parentheses, pi, e and the functions "+
			functionNames()+". Angles are in radians. No variables, no units, no thousands separators.",
		func(_ context.Context, in calculation) (string, error) { return calculate(in.Expression) },
		tools.Idempotent(), tools.Timeout(5*time.Second))
}

// calculate evaluates an expression. It uses the expr library only to parse; an evaluator of this
// package computes the value. The library's language contains more than arithmetic, and its
// integers overflow silently.
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

// foreign matches a character that arithmetic does not need. Quotes and brackets, for instance,
// begin other constructs of the library's language.
var foreign = regexp.MustCompile(`[^0-9A-Za-z_.,+\-*/%^()\s]`)

// checkExpression rejects expressions that the parser must not receive. Its errors are for the
// model.
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
			return fmt.Errorf("/expression: %s is not an operator; use floor(a / b) for a whole quotient", comment)
		}
	}
	return nil
}

// widen appends a decimal point to integers that are too long for the parser's int64. The evaluator
// reads the literal from the source, so the value stays exact.
func widen(expression string) string {
	tokens, err := lexer.Lex(file.NewSource(expression))
	if err != nil {
		return expression // the parser reports the error
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

// wholeNumber matches integers that can exceed an int64.
var wholeNumber = regexp.MustCompile(`^[0-9_]{19,}$`)

// parseProblem returns the message and the position of a parser error, without its multi-line
// excerpt.
func parseProblem(err error) error {
	if problem := (*file.Error)(nil); errors.As(err, &problem) {
		return fmt.Errorf("/expression: %s at character %d", problem.Message, problem.Column+1)
	}
	return fmt.Errorf("/expression: %w", err)
}
