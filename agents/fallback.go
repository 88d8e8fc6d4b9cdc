package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxModels bounds the models of an agent.
const maxModels = 8

// Fallback is what happens when a call of an agent's model fails.
type Fallback struct {
	// Models are the models after the first one, at most 7. In files they follow it in the list
	// model. A failed call is attempted at the next model. After the last model, the first one
	// follows.
	Models []string `json:"-" yaml:"-"`

	// On are the error codes at which the next model follows. Empty = those of
	// [DefaultFallbackCodes]. After another error, the call is attempted at the same model, or the
	// run fails.
	On []string `json:"on,omitempty" yaml:"on,omitempty"`
}

// defaultFallbackCodes are errors of one provider, which another provider need not have.
var defaultFallbackCodes = []string{
	"circuit_open", "forbidden", "malformed_response", "not_found", "provider_busy", "quota_exceeded", "rate_limited",
	"timeout", "truncated", "unauthorized", "unavailable",
}

// otherFallbackCodes are errors that most providers would have with the same request, and conflict,
// after which the provider still answers the request.
var otherFallbackCodes = []string{
	"conflict", "content_filter", "context_length", "invalid_request", "request_too_large", "response_too_large",
}

// DefaultFallbackCodes returns the error codes at which the next model follows by default, sorted.
func DefaultFallbackCodes() []string { return slices.Clone(defaultFallbackCodes) }

// FallbackCodes returns all error codes that Fallback.On may have, sorted.
func FallbackCodes() []string {
	codes := slices.Concat(defaultFallbackCodes, otherFallbackCodes)
	slices.Sort(codes)
	return codes
}

// FallsBackOn reports whether the next model follows after an error with a code.
func (f Fallback) FallsBackOn(code string) bool {
	if len(f.On) > 0 {
		return slices.Contains(f.On, code)
	}
	return slices.Contains(defaultFallbackCodes, code)
}

// modelKey returns the key of the i-th of n models: one model is text.
func modelKey(key string, i, n int) string {
	if n == 1 {
		return key
	}
	return fmt.Sprintf("%s[%d]", key, i)
}

// models reads a model, or a list of models.
func (r *reader) models(key string, first *string, others *Fallback) func(*yaml.Node) string {
	return func(node *yaml.Node) string {
		if isText(node) {
			*first = node.Value
			return ""
		}
		if node.Kind != yaml.SequenceNode {
			return "must be a model, or a list of models, not " + describe(node)
		}
		var all []string
		if reason := r.texts(key, &all)(node); reason != "" {
			return reason
		}
		if len(all) == 0 || len(all) > maxModels {
			return fmt.Sprintf("must be 1 to %d models, not %d", maxModels, len(all))
		}
		*first, others.Models = all[0], rest(all)
		return ""
	}
}

// rest returns the models after the first; nil = there are none.
func rest(models []string) []string {
	if len(models) == 1 {
		return nil
	}
	return slices.Clone(models[1:])
}

// fallback reads the key fallback.
func (r *reader) fallback(prefix string, into *Fallback) func(*yaml.Node) string {
	prefix += "fallback."
	return r.keyed(prefix, func() []field { return []field{{"on", r.texts(prefix+"on", &into.On)}} })
}

// modelMistakes returns the mistakes in a model, the models after it, and the codes of its fallback.
// isDefault tells that the codes also are for other models than these: those of inline agents.
func modelMistakes(model string, f Fallback, isDefault bool) []mistake {
	var found []mistake
	all := append([]string{model}, f.Models...)
	if len(all) > maxModels {
		found = append(found, newMistake("model", "must be at most %d models, not %d", maxModels, len(all)))
	}
	for i, m := range all {
		at := mistake{key: "model", index: i}
		if len(all) == 1 {
			at.index = -1
		}
		switch {
		case !modelRule.MatchString(m):
			at.reason = fmt.Sprintf("model %.80q must be provider/model, such as openai/gpt-5-mini", m)
			found = append(found, at)
		case slices.Contains(all[:i], m):
			at.reason = fmt.Sprintf("model %.80q appears twice", m)
			found = append(found, at)
		}
	}
	if len(all) == 1 && len(f.On) > 0 && !isDefault {
		found = append(found, newMistake("fallback", "needs a list of models, as in model: [openai/gpt-5-mini, gemini/gemini-3-flash]"))
	}
	return append(found, f.codeMistakes()...)
}

// codeMistakes returns the mistakes in the error codes.
func (f Fallback) codeMistakes() []mistake {
	for i, code := range f.On {
		if !slices.Contains(FallbackCodes(), code) {
			return []mistake{{"fallback.on", i, fmt.Sprintf("fallback.on: %.80q must be one of %s", code, strings.Join(FallbackCodes(), ", "))}}
		}
		if slices.Contains(f.On[:i], code) {
			return []mistake{{"fallback.on", i, fmt.Sprintf("fallback.on: %q appears twice", code)}}
		}
	}
	return nil
}

// modelsOf returns the JSON of a model and the models after it.
func modelsOf(model string, f Fallback) modelsJSON {
	if model == "" && len(f.Models) == 0 {
		return nil
	}
	return append(modelsJSON{model}, f.Models...)
}

// modelsJSON is the JSON of models: one is text, several are a list.
type modelsJSON []string

// MarshalJSON returns text for one model.
func (m modelsJSON) MarshalJSON() ([]byte, error) {
	if len(m) == 1 {
		return plainJSON(m[0])
	}
	return plainJSON([]string(m))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (m *modelsJSON) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*m = modelsJSON{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	*m = list
	return nil
}

// split stores the models in the fields of a definition or a step.
func (m modelsJSON) split(first *string, others *Fallback) {
	if len(m) > 0 {
		*first, others.Models = m[0], rest(m)
	}
}

// fallbackJSON is the JSON of a Fallback, without the models.
type fallbackJSON struct {
	On []string `json:"on,omitempty"`
}

// fallback returns the Fallback, without the models. f may be nil.
func (f *fallbackJSON) fallback() Fallback {
	if f == nil {
		return Fallback{}
	}
	return Fallback{On: f.On}
}

// json returns the JSON; nil = it is the default. The order of codes has no meaning.
func (f Fallback) json() *fallbackJSON {
	if len(f.On) == 0 {
		return nil
	}
	codes := slices.Clone(f.On)
	slices.Sort(codes)
	if slices.Equal(codes, defaultFallbackCodes) {
		return nil
	}
	return &fallbackJSON{codes}
}
