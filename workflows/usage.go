package workflows

import "slices"

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
				{&s.Reasoning, &u.Reasoning}, {&s.CachedInput, &u.CachedInput}, {&s.CacheWrite, &u.CacheWrite},
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

// tokens is what a run has used; a call that did not say counts as nothing.
func tokens(usage []Usage) int64 {
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

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
