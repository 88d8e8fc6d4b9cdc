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

// maxBits bounds a numerator or denominator: beyond it whole numbers overflow, as a float64 does,
// and fractions are rounded to a float64.
const maxBits = 1024

// maxPowerBits bounds the work of one exact power.
const maxPowerBits = 16 << 10

var (
	errOverflow = errors.New("the result is too large")
	errZero     = errors.New("division by zero")
	errNotReal  = errors.New("the result is not a real number")
	errForm     = errors.New("/expression: only arithmetic is allowed: numbers, + - * / % **, parentheses and functions")
)

// evaluator evaluates the nodes of arithmetic, and refuses others.
type evaluator struct {
	source string // ASCII, so that positions of the tree are byte offsets
}

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
	case *ast.BuiltinNode:
		return v.evaluateCall(node.Name, node.Arguments)
	case *ast.CallNode:
		if callee, ok := node.Callee.(*ast.IdentifierNode); ok {
			return v.evaluateCall(callee.Value, node.Arguments)
		}
	}
	return nil, errForm
}

func constant(name string) (*big.Rat, error) {
	switch name {
	case "pi":
		return approximate(math.Pi)
	case "e":
		return approximate(math.E)
	}
	return nil, fmt.Errorf("/expression: unknown name %.64q; there are pi and e, and the functions %s", name, functionNames())
}

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

var operators = map[string]func(a, b *big.Rat) (*big.Rat, error){
	"+":  func(a, b *big.Rat) (*big.Rat, error) { return new(big.Rat).Add(a, b), nil },
	"-":  func(a, b *big.Rat) (*big.Rat, error) { return new(big.Rat).Sub(a, b), nil },
	"*":  func(a, b *big.Rat) (*big.Rat, error) { return new(big.Rat).Mul(a, b), nil },
	"/":  divide,
	"%":  remainder,
	"**": power,
	"^":  power,
}

func divide(a, b *big.Rat) (*big.Rat, error) {
	if b.Sign() == 0 {
		return nil, errZero
	}
	return new(big.Rat).Quo(a, b), nil
}

// remainder has the sign of a, as in Go and C.
func remainder(a, b *big.Rat) (*big.Rat, error) {
	if !a.IsInt() || !b.IsInt() {
		return nil, errors.New("% needs whole numbers")
	}
	if b.Sign() == 0 {
		return nil, errZero
	}
	return new(big.Rat).SetInt(new(big.Int).Rem(a.Num(), b.Num())), nil
}

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

func wholePower(base *big.Rat, n int64) *big.Rat {
	exponent := big.NewInt(max(n, -n))
	num := new(big.Int).Exp(base.Num(), exponent, nil)
	den := new(big.Int).Exp(base.Denom(), exponent, nil)
	if n < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den)
}

// fit bounds the size of a number, and so the cost of the next operation.
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

// approximate converts a float64 exactly.
func approximate(f float64) (*big.Rat, error) {
	switch {
	case math.IsNaN(f):
		return nil, errNotReal
	case math.IsInf(f, 0):
		return nil, errOverflow
	}
	return new(big.Rat).SetFloat64(f), nil
}

// decimal reads a literal as it is written: 0.1 is a tenth, not the nearest float64, which is what
// the tree has.
func (v evaluator) decimal(node *ast.FloatNode) (*big.Rat, error) {
	if node.Value == 0 { // 1e-999999 as a fraction would have a million digits
		return new(big.Rat), nil
	}
	at := node.Location()
	value, ok := new(big.Rat).SetString(strings.ReplaceAll(v.source[at.From:at.To], "_", ""))
	if !ok {
		return nil, errForm
	}
	return fit(value)
}

func (v evaluator) evaluateCall(name string, nodes []ast.Node) (*big.Rat, error) {
	f, ok := functions[name]
	if !ok {
		return nil, fmt.Errorf("/expression: unknown function %.64q; there are %s", name, functionNames())
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

func functionNames() string { return strings.Join(slices.Sorted(maps.Keys(functions)), ", ") }
