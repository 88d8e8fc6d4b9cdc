package gemini

import (
	"regexp"
	"strconv"
)

// generation is the version of a Gemini model, such as 2.5. What a request may
// ask for depends on it.
type generation struct{ major, minor int }

var versionPattern = regexp.MustCompile(`^gemini-(\d{1,2})(?:\.(\d{1,2}))?(?:-|$)`)

// generationOf reads it in a name. A name without one, such as
// gemini-flash-latest, means a model of today.
func generationOf(model string) generation {
	found := versionPattern.FindStringSubmatch(model)
	if found == nil {
		return generation{major: 3}
	}
	var g generation
	g.major, _ = strconv.Atoi(found[1])
	g.minor, _ = strconv.Atoi(found[2]) // 0 if there is none
	return g
}

func (g generation) since(major, minor int) bool {
	return g.major > major || g.major == major && g.minor >= minor
}

// signs reports whether the model refuses calls without a signature. Since then
// it also takes media in the results of tools.
func (g generation) signs() bool { return g.since(3, 0) }

// budgets are the tokens for models that want a number and not a level.
var budgets = map[string]int{"minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576}

// thinking asks for an effort, and to see the thoughts; nil if the model cannot think.
func (g generation) thinking(effort string) *thinkingConfig {
	switch {
	case effort == "" || !g.since(2, 5):
		return nil
	case g.since(3, 0):
		return &thinkingConfig{IncludeThoughts: true, Level: effort}
	default:
		budget := budgets[effort]
		return &thinkingConfig{IncludeThoughts: true, Budget: &budget}
	}
}

// thinkingConfig has the options of reasoning.
type thinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts"`
	Level           string `json:"thinkingLevel,omitempty"`
	Budget          *int   `json:"thinkingBudget,omitempty"`
}
