package admission

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit bounds the calls of a provider, of all workers together. The zero value is no limit.
type Limit struct {
	// Calls is how many calls may be active at once; 0 = any number.
	Calls int
	// PerMinute is how many calls may begin in a minute; 0 = any number. They are spread: only a
	// sixtieth of them, at least one, may begin at once.
	PerMinute int
}

// Limits are the limits of providers by name: the part before the slash in a model.
type Limits map[string]Limit

// Bounds of a limit.
const (
	maxCalls     = 100_000
	maxPerMinute = 6_000_000
)

// limitRule matches the limit of one provider: its name, and the calls, the calls and the rate, or the
// rate.
var limitRule = regexp.MustCompile(`^([a-z0-9][a-z0-9_-]{0,63})=(?:([0-9]{1,9})(?:/([0-9]{1,9})rpm)?|([0-9]{1,9})rpm)$`)

// ParseLimits parses limits such as "openai=32/600rpm,anthropic=16,gemini=60rpm": the calls that may be
// active at once, the calls that may begin in a minute, or both.
func ParseLimits(text string) (Limits, error) {
	limits := Limits{}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		parts := limitRule.FindStringSubmatch(entry)
		if parts == nil {
			return nil, fmt.Errorf("%.80q is not a limit such as openai=32, openai=600rpm or openai=32/600rpm", entry)
		}
		name, calls, rate := parts[1], parts[2], cmp.Or(parts[3], parts[4])
		var limit Limit
		if calls != "" {
			limit.Calls, _ = strconv.Atoi(calls)
		}
		if rate != "" {
			limit.PerMinute, _ = strconv.Atoi(rate)
		}
		switch _, isRepeated := limits[name]; {
		case calls != "" && limit.Calls < 1, rate != "" && limit.PerMinute < 1, limit.Calls > maxCalls, limit.PerMinute > maxPerMinute:
			return nil, fmt.Errorf("%.80q must allow 1 to %d calls at once, and 1 to %d in a minute", entry, maxCalls, maxPerMinute)
		case isRepeated:
			return nil, fmt.Errorf("%q appears twice", name)
		}
		limits[name] = limit
	}
	return limits, nil
}

// String returns the limits in the form of ParseLimits, sorted by provider.
func (l Limits) String() string {
	var entries []string
	for name, limit := range l {
		entry := name + "="
		if limit.Calls > 0 {
			entry += strconv.Itoa(limit.Calls)
		}
		if limit.Calls > 0 && limit.PerMinute > 0 {
			entry += "/"
		}
		if limit.PerMinute > 0 {
			entry += strconv.Itoa(limit.PerMinute) + "rpm"
		}
		entries = append(entries, entry)
	}
	slices.SortFunc(entries, cmp.Compare[string])
	return strings.Join(entries, ",")
}

// interval returns the time between two calls at the rate.
func (l Limit) interval() time.Duration { return time.Minute / time.Duration(l.PerMinute) }

// burst returns how many calls may begin at once.
func (l Limit) burst() int { return max(1, l.PerMinute/60) }
