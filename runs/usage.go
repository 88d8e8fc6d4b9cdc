package runs

import (
	"cmp"
	"slices"
)

// Usage is what the calls of one model used. A nil count is unknown, and not zero.
type Usage struct {
	Provider    string `json:"provider,omitempty"`
	Model       string `json:"model,omitempty"`
	Input       *int64 `json:"input,omitempty"`
	Output      *int64 `json:"output,omitempty"`
	Total       *int64 `json:"total,omitempty"`
	Reasoning   *int64 `json:"reasoning,omitempty"`
	CachedInput *int64 `json:"cachedInput,omitempty"`
	CacheWrite  *int64 `json:"cacheWrite,omitempty"`
	// Cost is in millionths of the currency of the worker's prices.
	Cost *int64 `json:"cost,omitempty"`
	// Calls is how many model calls it is of.
	Calls int64 `json:"calls,omitempty"`
	// Estimated is the part of calls whose provider reported no usage, for instance because the
	// answer was cut; nil = none.
	Estimated *Estimate `json:"estimated,omitempty"`
}

// Estimate is the part of a Usage that is estimated. The Usage includes it.
type Estimate struct {
	Calls  int64 `json:"calls"`
	Input  int64 `json:"input,omitempty"`
	Output int64 `json:"output,omitempty"`
	Cost   int64 `json:"cost,omitempty"`
}

// MaxUsages bounds the entries of a run, since a provider may answer with another model each time.
const MaxUsages = 8

// addUsage adds usage to the entry of its provider and model. What exceeds MaxUsages goes to one
// entry without names.
func addUsage(sum []Usage, u Usage) []Usage {
	if u == (Usage{}) {
		return sum
	}
	known := slices.ContainsFunc(sum, func(s Usage) bool { return s.Provider == u.Provider && s.Model == u.Model })
	if !known && len(sum) >= MaxUsages {
		u.Provider, u.Model = "", ""
	}
	for i := range sum {
		if s := &sum[i]; s.Provider == u.Provider && s.Model == u.Model {
			if (s.Total == nil) != (u.Total == nil) { // one provider model may report it in some answers only
				s.Total, u.Total = s.total(), u.total()
			}
			for _, c := range [][2]**int64{
				{&s.Input, &u.Input}, {&s.Output, &u.Output}, {&s.Total, &u.Total},
				{&s.Reasoning, &u.Reasoning}, {&s.CachedInput, &u.CachedInput}, {&s.CacheWrite, &u.CacheWrite}, {&s.Cost, &u.Cost},
			} {
				*c[0] = addCount(*c[0], *c[1])
			}
			s.Calls += u.Calls
			s.Estimated = addEstimate(s.Estimated, u.Estimated)
			return sum
		}
	}
	return append(sum, u)
}

func addCount(a, b *int64) *int64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	n := *a + *b
	return &n
}

// addEstimate returns the sum in a new value, because a and b may be shared.
func addEstimate(a, b *Estimate) *Estimate {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &Estimate{Calls: a.Calls + b.Calls, Input: a.Input + b.Input, Output: a.Output + b.Output, Cost: a.Cost + b.Cost}
}

// total returns the provider's total, or else the sum of input and output; nil = none of them is
// known.
func (u Usage) total() *int64 {
	if u.Total != nil {
		return u.Total
	}
	return addCount(u.Input, u.Output)
}

// Tokens returns the sum of all tokens; unknown counts are zero.
func Tokens(usage []Usage) int64 {
	var n int64
	for _, u := range usage {
		n += value(u.total())
	}
	return n
}

// Estimated returns the estimated part of the tokens, and the number of calls it is of.
func Estimated(usage []Usage) (tokens, calls int64) {
	for _, u := range usage {
		if e := u.Estimated; e != nil {
			tokens, calls = tokens+e.Input+e.Output, calls+e.Calls
		}
	}
	return tokens, calls
}

// Sum adds up usage by provider and model.
func Sum(usage ...[]Usage) []Usage {
	var sum []Usage
	for _, u := range slices.Concat(usage...) {
		sum = addUsage(sum, u)
	}
	return sum
}

// Cost returns the sum of all costs, in millionths; unknown ones are zero. known tells whether one
// is known.
func Cost(usage []Usage) (sum int64, known bool) {
	for _, u := range usage {
		sum, known = sum+value(u.Cost), known || u.Cost != nil
	}
	return sum, known
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
