package anthropic

import (
	"encoding/json"
	"regexp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// structured matches the model families that support structured output from version 4.5 on.
var structured = regexp.MustCompile(`^claude-(opus|sonnet|haiku)-`)

// grammar is the JSON Schema subset that the API documents for structured output, with its limits
// on optional properties and unions.
var grammar = wire.Dialect{
	Keywords: []string{"$ref", "anyOf", "const", "description", "format", "minItems", "title"},
	Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
	Object:   true, Closed: true, Flat: true,
	MinItems: 1, Optional: 24, Unions: 16,
}

// safeGrammar returns the part of grammar whose limits are known to be safe. The API compiles the
// schema to a grammar and rejects it if that becomes too large, without documenting the size.
// [Model.schemaOf] uses it when the user has not explicitly requested a native schema.
func safeGrammar() *wire.Dialect {
	d := grammar
	d.Keywords = d.Keywords[1:] // without $ref: each use repeats the definition
	d.Depth, d.Properties, d.Values, d.Text, d.Optional, d.Unions = 6, 50, 100, 4_000, 12, 8
	return &d
}

// schemaOf returns the schema for the request, translated to the API's subset; nil = the request
// carries no schema. An explicit [llm.Output.Native] uses the documented limits and accepts the
// risk of a rejected request.
func (m *Model) schemaOf(req *llm.Request) json.RawMessage {
	isSupported := m.config.BaseURL == DefaultBaseURL && structured.MatchString(req.Model) && generationOf(req.Model).Since(4, 5)
	switch {
	case !req.Output.SendsSchema(isSupported):
		return nil
	case req.Output.Native == nil:
		return safeGrammar().Translate(req.Output.Schema)
	}
	return grammar.Translate(req.Output.Schema)
}
