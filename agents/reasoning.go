package agents

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// Reasoning configures how a model reasons before it answers.
type Reasoning struct {
	// Effort is how much the model reasons: minimal, low, medium or high. Empty = the provider's
	// default. A model that cannot reason, or not as much, may refuse the request.
	Effort string `json:"effort,omitempty" yaml:"effort,omitempty"`
}

var efforts = []string{"minimal", "low", "medium", "high"}

// reasoning reads the key reasoning.
func (r *reader) reasoning(prefix string, into *Reasoning) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping(prefix+"reasoning.", node, []field{{"effort", effort(&into.Effort)}})
		return ""
	}
}

// effort reads an effort. "" is an error in files; in Go it means the default.
func effort(into *string) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if reason := text(into)(node); reason != "" {
			return reason
		}
		if *into == "" {
			return wantEffort
		}
		return ""
	}
}

const wantEffort = "must be minimal, low, medium or high"

// mistakes returns the mistakes.
func (r Reasoning) mistakes() []mistake {
	if r.Effort != "" && !slices.Contains(efforts, r.Effort) {
		return []mistake{newMistake("reasoning.effort", "%.80q "+wantEffort, r.Effort)}
	}
	return nil
}
