package agents

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What becomes of messages that a model's window has no room for.
const (
	ContextTrim      = "trim"      // the model is not told of them
	ContextSummarize = "summarize" // it is told a summary of them
)

const (
	minContext = 1_000
	maxKept    = 1_000
)

var contextPolicies = []string{ContextTrim, ContextSummarize}

// Context bounds what a model is told of a conversation that grows. The conversation itself stays as it is.
type Context struct {
	// MaxTokens is how many tokens a model call may be made with, by estimate: instructions, tools and messages
	// together. At least 1,000; 0 = there is no bound.
	MaxTokens int64 `json:"maxTokens,omitempty" yaml:"maxTokens,omitempty"`

	// Keep is what is left out last.
	Keep Keep `json:"keep,omitzero" yaml:"keep,omitempty"`

	// Policy is ContextTrim, the default, or ContextSummarize.
	Policy string `json:"policy,omitempty" yaml:"policy,omitempty"`

	// Model is the one that writes the summary, as provider/model; empty = the agent's own.
	Model string `json:"model,omitempty" yaml:"model,omitempty"`
}

// Keep counts messages, at most 1,000 each.
type Keep struct {
	First int `json:"first,omitempty" yaml:"first,omitempty"`
	Last  int `json:"last,omitempty" yaml:"last,omitempty"`
}

// Summarizes tells whether messages are summarized that a model is not told.
func (c Context) Summarizes() bool { return c.Policy == ContextSummarize }

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

func (r *reader) keep(into *Keep) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if node.Kind != yaml.MappingNode {
			return "must have keys, not be " + describe(node)
		}
		r.mapping("context.keep.", node, []field{{"first", count(&into.First)}, {"last", count(&into.Last)}})
		return ""
	}
}

func (c Context) complaints() []complaint {
	if c == (Context{}) {
		return nil
	}
	var found []complaint
	if c.MaxTokens < minContext {
		found = append(found, about("context.maxTokens", "must be at least %d tokens", minContext))
	}
	for _, k := range []struct {
		key string
		n   int
	}{{"context.keep.first", c.Keep.First}, {"context.keep.last", c.Keep.Last}} {
		if k.n < 0 || k.n > maxKept {
			found = append(found, about(k.key, "must be at most %d", maxKept))
		}
	}
	if c.Policy != "" && !slices.Contains(contextPolicies, c.Policy) {
		found = append(found, about("context.policy", "must be one of %s, not %.80q", strings.Join(contextPolicies, ", "), c.Policy))
	}
	switch {
	case c.Model == "":
	case !c.Summarizes():
		found = append(found, about("context.model", "writes a summary, so context.policy must be %s", ContextSummarize))
	case !modelRule.MatchString(c.Model):
		found = append(found, about("context.model", "%.80q must be provider/model, such as openai/gpt-5-mini", c.Model))
	}
	return found
}
