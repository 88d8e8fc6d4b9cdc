package workflows

import (
	"slices"

	"github.com/perdure/perdure/agents"
)

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
			for _, c := range [][2]**int64{
				{&s.Input, &u.Input}, {&s.Output, &u.Output}, {&s.Total, &u.Total},
				{&s.Reasoning, &u.Reasoning}, {&s.CachedInput, &u.CachedInput}, {&s.CacheWrite, &u.CacheWrite}, {&s.Cost, &u.Cost},
			} {
				*c[0] = addCount(*c[0], *c[1])
			}
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

// Tokens is what a run has used; a call that did not say counts as nothing.
func Tokens(usage []Usage) int64 {
	var n int64
	for _, u := range usage {
		switch {
		case u.Total != nil:
			n += *u.Total
		default:
			n += value(u.Input) + value(u.Output)
		}
	}
	return n
}

// Cost is what a run has cost, in millionths; a call that has no price counts as nothing. known tells whether one has.
func Cost(usage []Usage) (sum int64, known bool) {
	for _, u := range usage {
		sum, known = sum+value(u.Cost), known || u.Cost != nil
	}
	return sum, known
}

// overspent tells whether the run has used more than it may. What compensates for what was done may use what it needs.
func (r *run) overspent() (end ending, over bool) {
	l := r.in.Limits
	cost, _ := Cost(r.usage)
	switch {
	case r.undoes():
	case Tokens(r.usage) > l.Tokens:
		return limit(CodeLimitTokens, "the run reached its limit of %d tokens", l.Tokens), true
	case l.Cost > 0 && cost > l.Cost:
		return limit(CodeLimitCost, "the run reached its limit of %s for what models cost", agents.Money(l.Cost)), true
	}
	return ending{}, false
}

// left are limits for somebody who works for the run, with what it has left.
func (r *run) left(l Limits) Limits {
	l.Tokens = max(1, min(l.Tokens, r.in.Limits.Tokens-Tokens(r.usage)))
	if most := r.in.Limits.Cost; most > 0 {
		cost, _ := Cost(r.usage)
		if l.Cost == 0 {
			l.Cost = most
		}
		l.Cost = max(1, min(l.Cost, most-cost))
	}
	return l
}

// LimitsOf are those of an agent.
func LimitsOf(l agents.Limits) Limits {
	return Limits{Turns: l.Turns, Tokens: l.Tokens, Duration: l.Duration, ParallelTools: l.ParallelTools, Cost: int64(l.Cost)}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
