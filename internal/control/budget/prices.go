package budget

import (
	"math"

	"github.com/perdure/perdure/agents"
)

// Price is what a million tokens of a model cost. The parts of what is read and written that have
// no price of their own cost as much as the rest of it.
type Price struct {
	// Model is provider/model as agents name it, or a pattern of it in which * is any run of
	// characters but a slash.
	Model  string  `yaml:"model"`
	Input  float64 `yaml:"input"`
	Output float64 `yaml:"output"`
	// CachedInput and CacheWrite are of what was read from the provider's cache and written to it,
	// Reasoning of what was thought.
	CachedInput *float64 `yaml:"cachedInput"`
	CacheWrite  *float64 `yaml:"cacheWrite"`
	Reasoning   *float64 `yaml:"reasoning"`
}

// Tokens are those of one call; nil is unknown. Input and Output include their parts.
type Tokens struct {
	Input, Output, Total               *int64
	Reasoning, CachedInput, CacheWrite *int64
}

// Cost returns what a call costs, rounded to a millionth of the currency. A provider that only
// tells the total is taken to mean what costs more.
func (p Price) Cost(t Tokens) agents.Money {
	input, output := value(t.Input), value(t.Output)
	if t.Input == nil && t.Output == nil {
		input, output = value(t.Total), 0
		if p.Output > p.Input {
			input, output = output, input
		}
	}
	cached := min(value(t.CachedInput), input)
	written := min(value(t.CacheWrite), input-cached)
	thought := min(value(t.Reasoning), output)
	sum := float64(input-cached-written)*p.Input + float64(cached)*or(p.CachedInput, p.Input) + float64(written)*or(p.CacheWrite, p.Input) +
		float64(output-thought)*p.Output + float64(thought)*or(p.Reasoning, p.Output)
	return agents.Money(math.Round(sum)) // the price of a million tokens in the currency is that of one in millionths
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func or(price *float64, other float64) float64 {
	if price == nil {
		return other
	}
	return *price
}
