package builtin

import (
	"errors"
	"math"
	"math/big"
)

// mathFunction is a function that expressions can call.
type mathFunction struct {
	min, max int                                     // number of arguments
	call     func(args []*big.Rat) (*big.Rat, error) // receives min to max arguments
}

// functions are the functions of expressions, by name. init sets them.
var functions map[string]mathFunction

func init() {
	functions = map[string]mathFunction{
		"abs":   {1, 1, func(a []*big.Rat) (*big.Rat, error) { return new(big.Rat).Abs(a[0]), nil }},
		"ceil":  {1, 1, func(a []*big.Rat) (*big.Rat, error) { return ceil(a[0]), nil }},
		"floor": {1, 1, func(a []*big.Rat) (*big.Rat, error) { return floor(a[0]), nil }},
		"trunc": {1, 1, func(a []*big.Rat) (*big.Rat, error) { return trunc(a[0]), nil }},
		"round": {1, 2, round},
		"max":   {1, 100, func(a []*big.Rat) (*big.Rat, error) { return extreme(a, 1), nil }},
		"min":   {1, 100, func(a []*big.Rat) (*big.Rat, error) { return extreme(a, -1), nil }},
		"cos":   float(math.Cos),
		"exp":   float(math.Exp),
		"ln":    float(math.Log),
		"log10": float(math.Log10),
		"sin":   float(math.Sin),
		"sqrt":  {1, 1, squareRoot},
		"tan":   float(math.Tan),
	}
}

// float converts a function of package math, whose result has the precision of a float64. An
// infinite result, such as ln(0), is an error.
func float(f func(float64) float64) mathFunction {
	return mathFunction{1, 1, func(args []*big.Rat) (*big.Rat, error) {
		x, _ := args[0].Float64()
		y := f(x)
		if math.IsInf(y, -1) {
			return nil, errNotReal
		}
		return approximate(y)
	}}
}

// floor returns the largest integer that is not greater than a.
func floor(a *big.Rat) *big.Rat {
	// big.Int.Div is Euclidean. With a positive divisor, as every denominator is, that is the
	// floor.
	return new(big.Rat).SetInt(new(big.Int).Div(a.Num(), a.Denom()))
}

// ceil returns the smallest integer that is not less than a.
func ceil(a *big.Rat) *big.Rat {
	down := floor(new(big.Rat).Neg(a))
	return down.Neg(down)
}

// trunc removes the fraction of a.
func trunc(a *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Quo(a.Num(), a.Denom()))
}

// round rounds half away from zero: to an integer, or to the number of decimals in the second
// argument.
func round(args []*big.Rat) (*big.Rat, error) {
	scale := big.NewRat(1, 1)
	if len(args) == 2 {
		digits := args[1]
		if !digits.IsInt() || digits.Cmp(big.NewRat(0, 1)) < 0 || digits.Cmp(big.NewRat(100, 1)) > 0 {
			return nil, errors.New("round takes 0 to 100 decimals")
		}
		scale.SetInt(new(big.Int).Exp(big.NewInt(10), digits.Num(), nil))
	}
	half := big.NewRat(int64(args[0].Sign()), 2)
	scaled := new(big.Rat).Mul(args[0], scale)
	return new(big.Rat).Quo(trunc(scaled.Add(scaled, half)), scale), nil
}

// extreme returns the largest argument for sign 1, the smallest for sign -1.
func extreme(args []*big.Rat, sign int) *big.Rat {
	found := args[0]
	for _, arg := range args[1:] {
		if arg.Cmp(found) == sign {
			found = arg
		}
	}
	return found
}

// squareRoot is exact for squares of integers and of fractions, else a float64.
func squareRoot(args []*big.Rat) (*big.Rat, error) {
	a := args[0]
	if a.Sign() < 0 {
		return nil, errNotReal
	}
	num, den := new(big.Int).Sqrt(a.Num()), new(big.Int).Sqrt(a.Denom())
	root := new(big.Rat).SetFrac(num, den)
	if new(big.Rat).Mul(root, root).Cmp(a) == 0 {
		return root, nil
	}
	f, _ := a.Float64()
	return approximate(math.Sqrt(f))
}
