package openai

import (
	"encoding/json"
	"regexp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// formatName is the name of the schema, which the API requires and shows to the model.
const formatName = "output"

// structured matches OpenAI's models that are known to support structured output, with and without
// tools. Other models may reject it: those before gpt-4o, and those for audio, search or research.
var structured = regexp.MustCompile(`^(gpt-4o(-mini)?|gpt-4\.1(-mini|-nano)?|gpt-([5-9]|[1-9]\d)(\.\d+)?(-mini|-nano|-pro|-codex|-max)*|o1|o3|o3-mini|o3-pro|o4-mini)` +
	`(-\d{4}-\d{2}-\d{2})?$`)

// unstructured is the only dated gpt-4o that does not support structured output.
const unstructured = "gpt-4o-2024-05-13"

// strict is the JSON Schema subset of strict mode, in which the API guarantees that the answer
// matches. Without strict mode the API accepts other schemas and only shows them to the model. For
// an enum with more than 250 values the API limits the total length as well; Values avoids that
// case.
var strict = wire.Dialect{
	Keywords: []string{
		"$ref", "anyOf", "const", "description", "format", "title",
		"multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
	},
	Formats: []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
	Object:  true, Closed: true, Complete: true,
	Depth: 10, Properties: 5_000, Values: 250, Text: 120_000,
}

// format is the schema of the answer for a request.
type format struct {
	schema json.RawMessage
	strict bool // strict mode
}

// formatOf returns the schema for the request: in strict mode if the API's subset can express it,
// else unchanged and without strict mode. nil = the request carries no schema.
func (e *endpoint) formatOf(req *llm.Request) *format {
	isSupported := e.config.BaseURL == DefaultBaseURL && structured.MatchString(req.Model) && req.Model != unstructured
	if !req.Output.SendsSchema(isSupported) {
		return nil
	}
	schema := req.Output.Schema
	if adapted := strict.Translate(schema); adapted != nil {
		return &format{schema: adapted, strict: true}
	}
	var root struct {
		Type  any `json:"type"`
		AnyOf any `json:"anyOf"`
	}
	if json.Unmarshal(schema, &root) != nil || root.Type != "object" || root.AnyOf != nil {
		return nil // the API rejects such a schema even without strict mode
	}
	return &format{schema: schema}
}
