package pipeline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/durations"
)

// The names of soft limits, as in definitions (limits.soft) and in the arguments of the interrupt
// about a limit.
const (
	LimitTurns        = "turns"
	LimitTokens       = "tokens"
	LimitCost         = "cost"
	LimitDuration     = "duration"
	LimitTokensPerDay = "tokensPerDay"
	LimitCostPerDay   = "costPerDay"
)

// LimitArguments are the arguments of the interrupt about a soft limit. Its amounts are JSON:
// durations are strings, such as "20m0s"; counts and money are numbers.
type LimitArguments struct {
	Limit   string          `json:"limit"`   // such as LimitTokens
	Used    json.RawMessage `json:"used"`    // at the time of the interrupt
	Allowed json.RawMessage `json:"allowed"` // up to which the run may continue after an approval
	// Currency is that of a cost. Date is the tenant's day in UTC; the amounts are those of all its
	// runs then.
	Currency string `json:"currency,omitempty"`
	Date     string `json:"date,omitempty"`
}

// NewLimitArguments returns the arguments for a limit. used and allowed are turns, tokens,
// nanoseconds, or millionths of a currency, according to the limit.
func NewLimitArguments(limit string, used, allowed int64) LimitArguments {
	return LimitArguments{Limit: limit, Used: amount(limit, used), Allowed: amount(limit, allowed)}
}

// amount returns a number of a limit as JSON. Durations are rounded: to seconds above a minute,
// else to milliseconds.
func amount(limit string, n int64) json.RawMessage {
	switch limit {
	case LimitCost, LimitCostPerDay:
		return json.RawMessage(agents.Money(n).String())
	case LimitDuration:
		d := time.Duration(n)
		if d > time.Minute {
			d = d.Round(time.Second)
		}
		return json.RawMessage(strconv.Quote(d.Round(time.Millisecond).String()))
	}
	return strconv.AppendInt(nil, n, 10)
}

// AmountText returns an amount as text, without quotes.
func AmountText(amount json.RawMessage) string { return strings.Trim(string(amount), `"`) }

// maxAmount bounds amounts of tokens and turns: larger ones are not exact in JavaScript.
const maxAmount = 1 << 53

// Allow returns the arguments with another allowed amount, which an approver gives as JSON, and
// that amount as a number. It must be above what is used. The error says what the amount must be.
func (a LimitArguments) Allow(value json.RawMessage) (LimitArguments, int64, error) {
	used, err := parseAmount(a.Limit, a.Used)
	if err != nil {
		return a, 0, err
	}
	n, err := parseAmount(a.Limit, value)
	switch {
	case err != nil:
		return a, 0, err
	case n <= used:
		return a, 0, fmt.Errorf("must be more than the %s already used", AmountText(a.Used))
	}
	a.Allowed = amount(a.Limit, n)
	return a, n, nil
}

// parseAmount is the inverse of amount, up to rounding. Money may be a number or a string. The
// error says what the amount must be.
func parseAmount(limit string, raw json.RawMessage) (int64, error) {
	var text string
	isText := json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"'
	switch limit {
	case LimitCost, LimitCostPerDay:
		if !isText {
			text = string(raw)
		}
		m, err := agents.ParseMoney(text)
		return int64(m), err
	case LimitDuration:
		d, err := durations.Parse(text)
		if err != nil || !isText {
			return 0, fmt.Errorf("must be a duration such as %q", "20m")
		}
		return int64(d), nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n > maxAmount {
		return 0, fmt.Errorf("must be a whole number up to %d", int64(maxAmount))
	}
	return n, nil
}
