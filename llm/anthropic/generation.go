package anthropic

import (
	"regexp"

	"github.com/perdure/perdure/llm/internal/wire"
)

// generation is the version of a Claude model, such as 4.5. It determines which options a request
// may contain. The zero value is an unknown version.
type generation struct{ wire.Version }

// versionPattern extracts the version from names such as claude-opus-4-5-20251101, claude-sonnet-5
// and claude-3-7-sonnet-latest. Numbers with more than two digits are dates.
var versionPattern = regexp.MustCompile(`^claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?:[-@]|$)`)

// generationOf returns the version in a model name, or the zero value.
func generationOf(model string) generation {
	version, _ := wire.VersionOf(model, versionPattern)
	return generation{version}
}

// thinks reports whether the model supports extended thinking.
func (g generation) thinks() bool { return g.Since(4, 0) }

// adapts reports whether the model supports adaptive thinking: it takes an effort. Earlier models
// take a token budget.
func (g generation) adapts() bool { return g.Since(4, 6) }

// binds reports whether the model accepts a thinking block only after the exact conversation in
// which the block was produced.
func (g generation) binds() bool { return g.Since(5, 1) }

// DefaultMaxTokens returns the max_tokens of a request without [llm.Request.MaxOutputTokens]. It is
// the largest value that every model of the generation accepts, capped at 64,000; unused tokens
// cost nothing. Thinking tokens count.
//
//	Claude 4.5 and later  64,000
//	Claude 4.0 and 4.1    32,000
//	Claude 3               4,096
//	any other              8,192
func DefaultMaxTokens(model string) int {
	switch g := generationOf(model); {
	case g.Since(4, 5):
		return 64_000
	case g.Since(4, 0):
		return 32_000
	case g.Since(3, 0):
		return 4_096
	default:
		return 8_192
	}
}
