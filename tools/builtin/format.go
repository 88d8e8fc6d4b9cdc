package builtin

import (
	"math/big"
	"strconv"
	"strings"
)

// maxDecimals is how many decimals an exact fraction is worth; one that needs
// more comes from a root or the like, and only a float64's digits of it are true.
const maxDecimals = 30

// format writes whole numbers as such, whatever way they were reached: 6 / 2 is 3.
func format(value *big.Rat) string {
	if value.IsInt() {
		return value.Num().String()
	}
	if digits, exact := value.FloatPrec(); exact && digits <= maxDecimals {
		return value.FloatString(digits)
	}
	f, _ := value.Float64()
	// Plain digits while they are readable; zeros for a screenful are not.
	if text := strconv.FormatFloat(f, 'f', -1, 64); len(strings.TrimLeft(text, "-0.")) > 0 && len(text) <= 40 {
		return text
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
