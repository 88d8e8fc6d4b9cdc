package runs

import (
	"cmp"
	"slices"
)

// Usage is what calls of one model cost. A nil count is unknown, not zero.
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
	// Estimated is the part of calls whose answer was cut before the provider reported its usage; nil = none was.
	Estimated *Estimate `json:"estimated,omitempty"`
}

// Estimate is the part of a Usage that is estimated. The Usage includes it.
type Estimate struct {
	Calls  int64 `json:"calls"`
	Input  int64 `json:"input,omitempty"`
	Output int64 `json:"output,omitempty"`
	Cost   int64 `json:"cost,omitempty"`
}

// MaxUsages bounds the entries of a run: a provider may answer with another model each time.
const MaxUsages = 8

// addUsage adds a call's usage to the entry of its provider and model; what is beyond the bound goes
// to one entry without names.
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

// addEstimate returns the sum in a value of its own: a and b may belong to others.
func addEstimate(a, b *Estimate) *Estimate {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &Estimate{Calls: a.Calls + b.Calls, Input: a.Input + b.Input, Output: a.Output + b.Output, Cost: a.Cost + b.Cost}
}

// total is the provider's total, or else the sum of input and output; nil = none of them is known.
func (u Usage) total() *int64 {
	if u.Total != nil {
		return u.Total
	}
	return addCount(u.Input, u.Output)
}

// Tokens is what a run has used; a call that did not say counts as nothing.
func Tokens(usage []Usage) int64 {
	var n int64
	for _, u := range usage {
		n += value(u.total())
	}
	return n
}

// Estimated returns the part of the tokens that is estimated, and how many calls that is of.
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

// Cost is what a run has cost, in millionths; a call that has no price counts as nothing. known tells whether one has.
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
