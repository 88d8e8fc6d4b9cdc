package budget

import (
	"math"

	"github.com/perdure/perdure/agents"
)

// Price is what a million tokens of a model cost, in the currency of the file. A part of the input
// or output without a price of its own (nil) costs as much as the rest.
type Price struct {
	// Model is provider/model as agents name it, or a pattern of [path.Match]: * is any run of
	// characters but a slash.
	Model  string  `yaml:"model"`
	Input  float64 `yaml:"input"`
	Output float64 `yaml:"output"`
	// CachedInput and CacheWrite are the prices of input tokens that the provider reads from its
	// cache and writes to it; Reasoning is the price of the reasoning tokens of the output.
	CachedInput *float64 `yaml:"cachedInput"`
	CacheWrite  *float64 `yaml:"cacheWrite"`
	Reasoning   *float64 `yaml:"reasoning"`
}

// Tokens is the usage of one model call; nil = the provider did not report it. Input includes
// CachedInput and CacheWrite, Output includes Reasoning.
type Tokens struct {
	Input, Output, Total               *int64
	Reasoning, CachedInput, CacheWrite *int64
}

// Cost returns the cost of a call, rounded to a millionth of the currency. If the provider reports
// only the total, all tokens are charged at the higher price of input and output.
func (p Price) Cost(t Tokens) agents.Money {
	input, output := value(t.Input), value(t.Output)
	if t.Input == nil && t.Output == nil {
		input, output = value(t.Total), 0
		if p.Output > p.Input {
			input, output = output, input
		}
	}
	// Parts are bounded by what they are a part of: a provider may report inconsistent figures.
	cached := min(value(t.CachedInput), input)
	written := min(value(t.CacheWrite), input-cached)
	thought := min(value(t.Reasoning), output)
	sum := float64(input-cached-written)*p.Input + float64(cached)*or(p.CachedInput, p.Input) + float64(written)*or(p.CacheWrite, p.Input) +
		float64(output-thought)*p.Output + float64(thought)*or(p.Reasoning, p.Output)
	return agents.Money(math.Round(sum)) // a price per million tokens in the currency is the price of one token in millionths
}

// value returns *n; 0 for nil.
func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// or returns *price; other for nil.
func or(price *float64, other float64) float64 {
	if price == nil {
		return other
	}
	return *price
}
