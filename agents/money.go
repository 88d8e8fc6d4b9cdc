package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Money is an amount in millionths of the currency of the models' prices. Its text is a decimal
// number with up to six places.
type Money int64

// million is the Money of one unit of the currency.
const million = 1_000_000

var moneyRule = regexp.MustCompile(`^([0-9]{1,9})(?:\.([0-9]{1,6}))?$`)

var errMoney = errors.New("must be an amount such as 2 or 0.25, with up to nine digits before the point and six after it")

// ParseMoney parses an amount of at least zero. It does not round: more than six places are an
// error.
func ParseMoney(s string) (Money, error) {
	parts := moneyRule.FindStringSubmatch(s)
	if parts == nil {
		return 0, errMoney
	}
	n, err := strconv.ParseInt(parts[1]+(parts[2] + "000000")[:6], 10, 64)
	return Money(n), err
}

// String returns the amount as a decimal number without trailing zeros. The amount must not be
// negative.
func (m Money) String() string {
	s := strings.TrimRight(fmt.Sprintf("%d.%06d", m/million, m%million), "0")
	return strings.TrimSuffix(s, ".")
}

// MarshalJSON returns the amount as a number.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads the output of MarshalJSON.
func (m *Money) UnmarshalJSON(data []byte) (err error) {
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*m, err = ParseMoney(n.String())
	return err
}

// amount reads an amount above zero.
func amount(into *Money) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if tag := node.ShortTag(); node.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
			return "must be an amount such as 2 or 0.25, not " + describe(node)
		}
		m, err := ParseMoney(node.Value)
		switch {
		case err != nil:
			return err.Error()
		case m == 0:
			return "must be greater than zero"
		}
		*into = m
		return ""
	}
}
