package pipeline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
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

// Figures are the arguments of the interrupt about a soft limit. Durations are strings, such as
// "20m0s"; counts and money are numbers.
type Figures struct {
	Limit   string          `json:"limit"`   // such as LimitTokens
	Used    json.RawMessage `json:"used"`    // at the time of the interrupt
	Allowed json.RawMessage `json:"allowed"` // up to which the run may continue after an approval
	// Currency is that of a cost. Date is the tenant's day in UTC; the figures are those of all its
	// runs then.
	Currency string `json:"currency,omitempty"`
	Date     string `json:"date,omitempty"`
}

// FiguresOf returns the figures of a limit. used and allowed are turns, tokens, nanoseconds, or
// millionths of a currency, according to the limit.
func FiguresOf(limit string, used, allowed int64) Figures {
	return Figures{Limit: limit, Used: figure(limit, used), Allowed: figure(limit, allowed)}
}

// figure returns a number of a limit as JSON. Durations are rounded: to seconds above a minute,
// else to milliseconds.
func figure(limit string, n int64) json.RawMessage {
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

// FigureText returns a figure as text, without quotes.
func FigureText(figure json.RawMessage) string { return strings.Trim(string(figure), `"`) }

// maxFigure bounds figures of tokens and turns: larger ones are not exact in JavaScript.
const maxFigure = 1 << 53

// Allow returns the figures with another allowed figure, which an approver gives as JSON, and that
// figure as a number. It must be above what is used. The error says what the figure must be.
func (f Figures) Allow(value json.RawMessage) (Figures, int64, error) {
	used, err := parseFigure(f.Limit, f.Used)
	if err != nil {
		return f, 0, err
	}
	n, err := parseFigure(f.Limit, value)
	switch {
	case err != nil:
		return f, 0, err
	case n <= used:
		return f, 0, fmt.Errorf("must be more than the %s already used", FigureText(f.Used))
	}
	f.Allowed = figure(f.Limit, n)
	return f, n, nil
}

// parseFigure is the inverse of figure, up to rounding. Money may be a number or a string. The
// error says what the figure must be.
func parseFigure(limit string, raw json.RawMessage) (int64, error) {
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
		d, err := time.ParseDuration(text)
		if err != nil || !isText {
			return 0, fmt.Errorf("must be a duration such as %q", "20m")
		}
		return int64(d), nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n > maxFigure {
		return 0, fmt.Errorf("must be a whole number up to %d", int64(maxFigure))
	}
	return n, nil
}
