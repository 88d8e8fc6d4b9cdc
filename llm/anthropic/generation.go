package anthropic

import (
	"regexp"
	"strconv"
)

// generation is the version of a Claude model, such as 4.5; 0.0 is unknown.
// What a request may ask for depends on it.
type generation struct{ major, minor int }

// versionPattern finds it in claude-opus-4-5-20251101, claude-sonnet-5 and
// claude-3-7-sonnet-latest alike. What has more digits is a date.
var versionPattern = regexp.MustCompile(`^claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?:[-@]|$)`)

func generationOf(model string) generation {
	found := versionPattern.FindStringSubmatch(model)
	if found == nil {
		return generation{}
	}
	var g generation
	g.major, _ = strconv.Atoi(found[1])
	g.minor, _ = strconv.Atoi(found[2]) // 0 if there is none
	return g
}

func (g generation) since(major, minor int) bool {
	return g.major > major || g.major == major && g.minor >= minor
}

// thinks reports whether the model can be asked for thinking at all.
func (g generation) thinks() bool { return g.since(4, 0) }

// adapts reports whether the model decides itself how much it thinks; before,
// it wants a number of tokens.
func (g generation) adapts() bool { return g.since(4, 6) }

// binds reports whether thinking is valid only behind the very conversation that
// it was thought in.
func (g generation) binds() bool { return g.since(5, 1) }

// DefaultMaxTokens returns the limit of output of a request that names none: the
// most that every model of the family takes, since unused tokens cost nothing,
// but no more than an answer that is read can have. Thinking counts.
//
//	Claude 4.5 and later  64,000
//	Claude 4.0 and 4.1    32,000
//	Claude 3               4,096
//	any other              8,192
func DefaultMaxTokens(model string) int {
	switch g := generationOf(model); {
	case g.since(4, 5):
		return 64_000
	case g.since(4, 0):
		return 32_000
	case g.since(3, 0):
		return 4_096
	default:
		return 8_192
	}
}
