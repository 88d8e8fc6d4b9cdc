package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
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

// maxUsages bounds the entries of a run: a provider may answer with another model each time.
const maxUsages = 8

// addUsage adds a call's usage to the entry of its provider and model; what is beyond the bound goes
// to one entry without names.
func addUsage(sum []Usage, u Usage) []Usage {
	if u == (Usage{}) {
		return sum
	}
	known := slices.ContainsFunc(sum, func(s Usage) bool { return s.Provider == u.Provider && s.Model == u.Model })
	if !known && len(sum) >= maxUsages {
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

// checkRunLimits tells whether the run has used more than it may. Compensation may use what it needs.
func (r *run) checkRunLimits() (end ending, over bool) {
	if r.isCompensating() {
		return ending{}, false
	}
	return r.budget.overspent(r.in.Limits)
}

// use counts what was used, for the run and for the agent of the step that it is at.
func (r *run) use(u Usage) {
	r.budget.use(u)
	if l := r.activeStep(); l != nil {
		l.Tokens, l.Cost = l.Tokens+Tokens([]Usage{u}), l.Cost+value(u.Cost)
	}
}

// checkLimits tells whether the run, or the agent of the step that it is at, has used more than it may.
func (r *run) checkLimits() (end ending, over bool) {
	if end, over = r.checkRunLimits(); over {
		return end, true
	}
	return r.checkStepLimits()
}

// checkStepLimits tells whether the agent of a step has used more than it may itself: then its step has failed.
func (r *run) checkStepLimits() (end ending, over bool) {
	l := r.activeStep()
	switch {
	case l == nil:
		return ending{}, false
	case l.Limits.Tokens > 0 && l.Tokens > l.Limits.Tokens:
		end = limit(CodeLimitTokens, "the agent reached its limit of %d tokens", l.Limits.Tokens)
	case l.Limits.Cost > 0 && l.Cost > l.Limits.Cost:
		end = limit(CodeLimitCost, "the agent reached its limit of %s for what models cost", agents.Money(l.Limits.Cost))
	default:
		return ending{}, false
	}
	end.ofStep = true
	return end, true
}

// exhausted tells whether nothing more is to be done, since the run is cancelled or has reached a limit.
func (r *run) exhausted(ctx workflow.Context) (end ending, over bool) {
	switch {
	case ctx.Err() != nil:
		return ending{outcome: OutcomeCancelled}, true
	case r.overdue(ctx):
		return r.durationEnding(), true
	}
	return r.checkRunLimits()
}

// priced tells whether only models may be called that have a price.
func (r *run) priced() bool {
	l := r.activeStep()
	return r.in.Limits.costs() || l != nil && l.Limits.costs()
}

// costs tells whether it has to be known what models cost.
func (l Limits) costs() bool { return l.Cost > 0 || l.Soft != nil && l.Soft.Cost > 0 }

// LimitsOfSubagent are those of an agent that works for another one: it asks nobody whether it may go on.
func LimitsOfSubagent(l agents.Limits) Limits {
	return Limits{Turns: l.Turns, Tokens: l.Tokens, Duration: l.Duration, ParallelTools: l.ParallelTools, Cost: int64(l.Cost)}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
