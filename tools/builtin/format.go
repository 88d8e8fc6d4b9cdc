package builtin

import (
	"math/big"
	"strconv"
	"strings"
)

// maxDecimals is the maximum number of decimals of an exact fraction. A fraction with more is
// usually the result of a root, so only the digits of a float64 are correct.
const maxDecimals = 30

// format returns the decimal text of a value. An integer has no decimals, even as the result of a
// division: 6 / 2 is 3.
func format(value *big.Rat) string {
	if value.IsInt() {
		return value.Num().String()
	}
	if digits, exact := value.FloatPrec(); exact && digits <= maxDecimals {
		return value.FloatString(digits)
	}
	f, _ := value.Float64()
	// Plain digits, unless there are too many zeros to read.
	if text := strconv.FormatFloat(f, 'f', -1, 64); len(strings.TrimLeft(text, "-0.")) > 0 && len(text) <= 40 {
		return text
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
