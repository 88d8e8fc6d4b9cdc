package builtin

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// maxBits limits a numerator or denominator, to the range of a float64. A larger integer is an
// error; a larger fraction is rounded to a float64.
const maxBits = 1024

// maxPowerBits limits the size of an exact power, and so the time to compute it. A larger power is
// computed as a float64.
const maxPowerBits = 16 << 10

var (
	// Errors of the evaluation, for the model.
	errOverflow = errors.New("the result is too large")
	errZero     = errors.New("division by zero")
	errNotReal  = errors.New("the result is not a real number")
	errForm     = errors.New("/expression: only arithmetic is allowed: numbers, + - * / % **, parentheses and functions")
)

// evaluator evaluates the syntax tree of an expression with exact fractions. It rejects nodes that
// are not arithmetic.
type evaluator struct {
	source string // ASCII, so positions in the tree are byte offsets
}

// evaluate returns the value of a node.
func (v evaluator) evaluate(node ast.Node) (*big.Rat, error) {
	switch node := node.(type) {
	case *ast.IntegerNode:
		return new(big.Rat).SetInt64(int64(node.Value)), nil
	case *ast.FloatNode:
		return v.decimal(node)
	case *ast.IdentifierNode:
		return constant(node.Value)
	case *ast.UnaryNode:
		return v.evaluateUnary(node)
	case *ast.BinaryNode:
		return v.evaluateBinary(node)
	// The parser knows some function names, such as abs, as builtins of its language.
	case *ast.BuiltinNode:
		return v.evaluateCall(node.Name, node.Arguments)
	case *ast.CallNode:
		if callee, ok := node.Callee.(*ast.IdentifierNode); ok {
			return v.evaluateCall(callee.Value, node.Arguments)
		}
	}
	return nil, errForm
}

// constant returns the value of a name.
func constant(name string) (*big.Rat, error) {
	switch name {
	case "pi":
		return approximate(math.Pi)
	case "e":
		return approximate(math.E)
	}
	return nil, fmt.Errorf("/expression: unknown name %.64q; the names are pi, e, and the functions %s", name, functionNames())
}

// evaluateUnary evaluates a sign.
func (v evaluator) evaluateUnary(node *ast.UnaryNode) (*big.Rat, error) {
	value, err := v.evaluate(node.Node)
	if err != nil {
		return nil, err
	}
	switch node.Operator {
	case "+":
		return value, nil
	case "-":
		return new(big.Rat).Neg(value), nil
	}
	return nil, errForm
}

// evaluateBinary evaluates an operator with two operands.
func (v evaluator) evaluateBinary(node *ast.BinaryNode) (*big.Rat, error) {
	operate, ok := operators[node.Operator]
	if !ok {
		return nil, errForm
	}
	a, err := v.evaluate(node.Left)
	if err != nil {
		return nil, err
	}
	b, err := v.evaluate(node.Right)
	if err != nil {
		return nil, err
	}
	value, err := operate(a, b)
	if err != nil {
		return nil, err
	}
	return fit(value)
}

// operators are the binary operators. Their results still need fit.
var operators = map[string]func(a, b *big.Rat) (*big.Rat, error){
	"+":  func(a, b *big.Rat) (*big.Rat, error) { return new(big.Rat).Add(a, b), nil },
	"-":  func(a, b *big.Rat) (*big.Rat, error) { return new(big.Rat).Sub(a, b), nil },
	"*":  func(a, b *big.Rat) (*big.Rat, error) { return new(big.Rat).Mul(a, b), nil },
	"/":  divide,
	"%":  remainder,
	"**": power,
	"^":  power,
}

// divide returns the exact quotient.
func divide(a, b *big.Rat) (*big.Rat, error) {
	if b.Sign() == 0 {
		return nil, errZero
	}
	return new(big.Rat).Quo(a, b), nil
}

// remainder returns the remainder of an integer division. It has the sign of a, as in Go and C.
func remainder(a, b *big.Rat) (*big.Rat, error) {
	if !a.IsInt() || !b.IsInt() {
		return nil, errors.New("% needs whole numbers")
	}
	if b.Sign() == 0 {
		return nil, errZero
	}
	return new(big.Rat).SetInt(new(big.Int).Rem(a.Num(), b.Num())), nil
}

// power returns base to the power of exponent: exactly for an integer exponent if the result is
// within maxPowerBits, else as a float64.
func power(base, exponent *big.Rat) (*big.Rat, error) {
	if base.Sign() == 0 && exponent.Sign() < 0 {
		return nil, errZero
	}
	if exponent.IsInt() && exponent.Num().IsInt64() {
		n := exponent.Num().Int64()
		bits := int64(max(base.Num().BitLen(), base.Denom().BitLen()))
		if n > -maxPowerBits && n < maxPowerBits && bits*max(n, -n) <= maxPowerBits {
			return wholePower(base, n), nil
		}
	}
	b, _ := base.Float64()
	e, _ := exponent.Float64()
	return approximate(math.Pow(b, e))
}

// wholePower returns the exact power with the integer exponent n, which can be negative.
func wholePower(base *big.Rat, n int64) *big.Rat {
	exponent := big.NewInt(max(n, -n))
	num := new(big.Int).Exp(base.Num(), exponent, nil)
	den := new(big.Int).Exp(base.Denom(), exponent, nil)
	if n < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den)
}

// fit limits the size of a value to maxBits, and so the cost of the next operation.
func fit(value *big.Rat) (*big.Rat, error) {
	if value.Num().BitLen() <= maxBits && value.Denom().BitLen() <= maxBits {
		return value, nil
	}
	if value.IsInt() {
		return nil, errOverflow
	}
	f, _ := value.Float64()
	return approximate(f)
}

// approximate returns the exact fraction of a float64. NaN and infinity are errors.
func approximate(f float64) (*big.Rat, error) {
	switch {
	case math.IsNaN(f):
		return nil, errNotReal
	case math.IsInf(f, 0):
		return nil, errOverflow
	}
	return new(big.Rat).SetFloat64(f), nil
}

// decimal returns the value of a decimal literal as written: 0.1 is a tenth. The tree contains only
// the nearest float64.
func (v evaluator) decimal(node *ast.FloatNode) (*big.Rat, error) {
	if node.Value == 0 { // as a fraction, 1e-999999 has a million digits
		return new(big.Rat), nil
	}
	at := node.Location()
	value, ok := new(big.Rat).SetString(strings.ReplaceAll(v.source[at.From:at.To], "_", ""))
	if !ok {
		return nil, errForm
	}
	return fit(value)
}

// evaluateCall evaluates a function call.
func (v evaluator) evaluateCall(name string, nodes []ast.Node) (*big.Rat, error) {
	f, ok := functions[name]
	if !ok {
		return nil, fmt.Errorf("/expression: unknown function %.64q; the functions are %s", name, functionNames())
	}
	if len(nodes) < f.min || len(nodes) > f.max {
		return nil, fmt.Errorf("/expression: %s does not take %d arguments", name, len(nodes))
	}
	args := make([]*big.Rat, len(nodes))
	for i, node := range nodes {
		value, err := v.evaluate(node)
		if err != nil {
			return nil, err
		}
		args[i] = value
	}
	value, err := f.call(args)
	if err != nil {
		return nil, err
	}
	return fit(value)
}

// functionNames returns the names of the functions, for descriptions and errors.
func functionNames() string { return strings.Join(slices.Sorted(maps.Keys(functions)), ", ") }
