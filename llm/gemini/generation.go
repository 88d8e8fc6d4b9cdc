package gemini

import (
	"regexp"

	"github.com/perdure/perdure/llm/internal/wire"
)

// generation is the version of a Gemini model, such as 2.5. It determines which options a request
// may contain.
type generation struct{ wire.Version }

// versionPattern extracts the version from names such as gemini-3-flash and gemini-2.5-pro.
var versionPattern = regexp.MustCompile(`^gemini-(\d{1,2})(?:\.(\d{1,2}))?(?:-|$)`)

// generationOf returns the version in a model name. A name without a version, such as
// gemini-flash-latest, counts as version 3.
func generationOf(model string) generation {
	version, known := wire.VersionOf(model, versionPattern)
	if !known {
		version.Major = 3
	}
	return generation{version}
}

// signs reports whether the model rejects tool calls of the current turn without a signature. The
// same models accept media in tool results.
func (g generation) signs() bool { return g.Since(3, 0) }

// budgets map efforts to the token budgets of models before version 3, which have no levels.
var budgets = map[string]int{"minimal": 512, "low": 2_048, "medium": 8_192, "high": 24_576}

// thinking returns the options for an effort, including thought summaries; nil if there is no
// effort or the model does not support thinking.
func (g generation) thinking(effort string) *thinkingConfig {
	switch {
	case effort == "" || !g.Since(2, 5):
		return nil
	case g.Since(3, 0):
		return &thinkingConfig{IncludeThoughts: true, Level: effort}
	default:
		budget := budgets[effort]
		return &thinkingConfig{IncludeThoughts: true, Budget: &budget}
	}
}

// thinkingConfig is the thinkingConfig object of a request. Either Level or Budget is set.
type thinkingConfig struct {
	IncludeThoughts bool   `json:"includeThoughts"`
	Level           string `json:"thinkingLevel,omitempty"`
	Budget          *int   `json:"thinkingBudget,omitempty"`
}
