package agents

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Policies for messages that exceed Context.MaxTokens.
const (
	ContextTrim      = "trim"      // they are left out
	ContextSummarize = "summarize" // a summary replaces them
)

const (
	minContext = 1_000
	maxKept    = 1_000
)

var contextPolicies = []string{ContextTrim, ContextSummarize}

// Context bounds the part of a conversation that a model call gets. The conversation itself does
// not change.
type Context struct {
	// MaxTokens bounds the estimated tokens of a model call: instructions, tools and messages
	// together. At least 1,000; 0 = unlimited.
	MaxTokens int64 `json:"maxTokens,omitempty" yaml:"maxTokens,omitempty"`

	// Keep are the messages that are left out last.
	Keep Keep `json:"keep,omitzero" yaml:"keep,omitempty"`

	// Policy is ContextTrim, the default, or ContextSummarize.
	Policy string `json:"policy,omitempty" yaml:"policy,omitempty"`

	// Model writes the summary, as provider/model; empty = the agent's own model.
	Model string `json:"model,omitempty" yaml:"model,omitempty"`
}

// Keep is how many messages at the beginning and at the end are kept, at most 1,000 each.
type Keep struct {
	First int `json:"first,omitempty" yaml:"first,omitempty"`
	Last  int `json:"last,omitempty" yaml:"last,omitempty"`
}

// Summarizes reports whether messages that are left out are summarized.
func (c Context) Summarizes() bool { return c.Policy == ContextSummarize }

// context reads the key context.
func (r *reader) context(into *Context) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping("context.", node, []field{
			{"maxTokens", atLeast(&into.MaxTokens, minContext, "tokens")},
			{"keep", r.keep(&into.Keep)},
			{"policy", oneOf(&into.Policy, contextPolicies...)},
			{"model", text(&into.Model)},
		})
		r.require(node, "context.maxTokens")
		return ""
	}
}

// keep reads the key context.keep.
func (r *reader) keep(into *Keep) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping("context.keep.", node, []field{{"first", count(&into.First)}, {"last", count(&into.Last)}})
		return ""
	}
}

// mistakes returns the mistakes.
func (c Context) mistakes() []mistake {
	if c == (Context{}) {
		return nil
	}
	var found []mistake
	if c.MaxTokens < minContext {
		found = append(found, newMistake("context.maxTokens", "must be at least %d tokens", minContext))
	}
	for _, k := range []struct {
		key string
		n   int
	}{{"context.keep.first", c.Keep.First}, {"context.keep.last", c.Keep.Last}} {
		if k.n < 0 || k.n > maxKept {
			found = append(found, newMistake(k.key, "must be at most %d", maxKept))
		}
	}
	if c.Policy != "" && !slices.Contains(contextPolicies, c.Policy) {
		found = append(found, newMistake("context.policy", "must be one of %s, not %.80q", strings.Join(contextPolicies, ", "), c.Policy))
	}
	switch {
	case c.Model == "":
	case !c.Summarizes():
		found = append(found, newMistake("context.model", "needs context.policy %s", ContextSummarize))
	case !modelRule.MatchString(c.Model):
		found = append(found, newMistake("context.model", "%.80q must be provider/model, such as openai/gpt-5-mini", c.Model))
	}
	return found
}
