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

type calculation struct {
	Expression string `json:"expression" jsonschema:"for example (17.5 + 4) * 3 or round(1000 * 1.05**10, 2)"`
}

// Calculate returns the tool calculate, which evaluates an arithmetic
// expression: + - * / %, ** or ^ for powers, parentheses, the constants pi and
// e, and the functions abs, ceil, cos, exp, floor, ln, log10, max, min, round, sin, sqrt, tan and
// trunc. Angles are in radians.
//
// Whole numbers are exact up to 308 digits and overflow beyond; so are
// fractions while their parts stay that short. What has no such form, like a
// root, and what is printed of a third, has the precision and the range of a float64.
func Calculate() tools.Tool {
	return tools.Func("calculate",
		"Evaluates an arithmetic expression exactly. Knows + - * / %, ** for powers, parentheses, pi, e and the functions "+
			functionNames()+". Angles are in radians. No variables, no units, no thousands separators.",
		func(_ context.Context, in calculation) (string, error) { return calculate(in.Expression) },
		tools.Idempotent(), tools.Timeout(5*time.Second))
}

// calculate uses the library for what is hard to get right, reading the
// expression, and never its machine: the tree is evaluated by a function that knows
// arithmetic and nothing else. Its integers also wrap around, and ours must not.
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

// foreign is every character that no arithmetic needs: quotes, brackets, and whatever
// else the library's language could be spoken with.
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
	// To the library these begin a comment: 7 // 2 would be 7.
	for _, comment := range []string{"//", "/*"} {
		if strings.Contains(expression, comment) {
			return fmt.Errorf("/expression: %s is no operator; use floor(a / b) for a whole quotient", comment)
		}
	}
	return nil
}

// widen gives whole numbers that are too long for the parser a decimal point:
// it then only looks at their size, and the evaluator reads them as written.
func widen(expression string) string {
	tokens, err := lexer.Lex(file.NewSource(expression))
	if err != nil {
		return expression // the parser says what is wrong
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

// wholeNumber matches those that an int64 might not hold.
var wholeNumber = regexp.MustCompile(`^[0-9_]{19,}$`)

// parseProblem keeps the message and the place, without the library's drawing of it.
func parseProblem(err error) error {
	if problem := (*file.Error)(nil); errors.As(err, &problem) {
		return fmt.Errorf("/expression: %s at character %d", problem.Message, problem.Column+1)
	}
	return fmt.Errorf("/expression: %w", err)
}
