package openai

import (
	"encoding/json"
	"regexp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// formatName is what the API wants a schema to be called; the model is told it.
const formatName = "output"

// structured are OpenAI's models that are known to take the schema of an answer, with tools or
// without. Others refuse it, as all before gpt-4o did and those for sound, search or research may.
var structured = regexp.MustCompile(`^(gpt-4o(-mini)?|gpt-4\.1(-mini|-nano)?|gpt-([5-9]|[1-9]\d)(\.\d+)?(-mini|-nano|-pro|-codex|-max)*|o1|o3|o3-mini|o3-pro|o4-mini)` +
	`(-\d{4}-\d{2}-\d{2})?$`)

// unstructured is the one gpt-4o that does not.
const unstructured = "gpt-4o-2024-05-13"

// strict is what the API can hold a model to. It takes other schemas as well, and then only tells
// the model. Beyond 250 values in one enumeration, it counts their letters too.
var strict = wire.Dialect{
	Keywords: []string{
		"$ref", "anyOf", "const", "description", "format", "title",
		"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
	},
	Formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
	Object:  true, Closed: true, Complete: true,
	Depth: 10, Properties: 5_000, Values: 250, Text: 120_000,
}

// format is the schema of an answer as the API is told it.
type format struct {
	schema json.RawMessage
	strict bool
}

// formatOf is nil if the API is not told of a schema.
func (e *endpoint) formatOf(req *llm.Request) *format {
	known := e.config.BaseURL == DefaultBaseURL && structured.MatchString(req.Model) && req.Model != unstructured
	if !req.Output.Hands(known) {
		return nil
	}
	schema := req.Output.Schema
	if said := strict.Say(schema); said != nil {
		return &format{schema: said, strict: true}
	}
	var root struct {
		Type  any `json:"type"`
		AnyOf any `json:"anyOf"`
	}
	if json.Unmarshal(schema, &root) != nil || root.Type != "object" || root.AnyOf != nil {
		return nil // which the API refuses in any case
	}
	return &format{schema: schema}
}
