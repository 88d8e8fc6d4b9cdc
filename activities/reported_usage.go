package activities

import (
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// This file takes over the usage that a provider has reported.

// maxModelName bounds the model name of a provider in a history, in bytes.
const maxModelName = 128

// modelName returns the provider's name of the model, with every character replaced by "_" that is
// not printable ASCII or could be markup. The name comes from outside, and goes to histories,
// metrics and clients.
func modelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' || strings.ContainsRune(`<>&"\`, r) {
			return '_'
		}
		return r
	}, s[:min(len(s), maxModelName)])
}

// maxTokenCount is more than any call can cost. A count beyond it, or below zero, is taken as not
// reported: sums of such counts could overflow.
const maxTokenCount = 1 << 40

// tokenCount returns a plausible count, and nil for others.
func tokenCount(n *int64) *int64 {
	if n == nil || *n < 0 || *n > maxTokenCount {
		return nil
	}
	return n
}

// reportedUsage returns what a provider has reported, without Calls and Cost.
func reportedUsage(f llm.Finish) runs.Usage {
	u := f.Usage
	return plausible(runs.Usage{
		Provider: f.Provider, Model: f.Model, Input: u.Input, Output: u.Output, Total: u.Total,
		Reasoning: u.Reasoning, CachedInput: u.CachedInput, CacheWrite: u.CacheWrite,
	})
}

// plausible returns the usage that a provider or a remote agent has reported, with bounded names and
// without impossible counts.
func plausible(u runs.Usage) runs.Usage {
	u.Provider, u.Model = modelName(u.Provider), modelName(u.Model)
	for _, count := range []**int64{&u.Input, &u.Output, &u.Total, &u.Reasoning, &u.CachedInput, &u.CacheWrite} {
		*count = tokenCount(*count)
	}
	return u
}
