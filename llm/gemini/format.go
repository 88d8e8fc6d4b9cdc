package gemini

import (
	"encoding/json"
	"regexp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// structured matches the text models that are known to support structured output. They support it
// from version 2.5 on, and together with tools from version 3 on. Other models, such as Gemma and
// the image and speech models, may reject it.
var structured = regexp.MustCompile(`^gemini-(\d+(\.\d+)?-)?(pro|flash|flash-lite)(-latest|-preview)?(-\d{2}-\d{4})?$`)

// format is the JSON Schema subset that the package sends. The API supports more keywords, such as
// numeric ranges and list lengths, but rejects schemas with too many of them.
var format = wire.Dialect{
	Keywords:  []string{"anyOf", "description", "format", "title"},
	Formats:   []string{"date-time", "date", "time"},
	PlainEnum: true,
	Depth:     8, Properties: 200, Values: 200, Text: 10_000,
}

// schemaOf returns the schema for the request, translated to the API's subset; nil = the request
// carries no schema.
func (m *Model) schemaOf(req *llm.Request) json.RawMessage {
	model := generationOf(req.Model)
	isSupported := m.config.BaseURL == DefaultBaseURL && structured.MatchString(req.Model) && model.Since(2, 5) && (len(req.Tools) == 0 || model.Since(3, 0))
	if !req.Output.SendsSchema(isSupported) {
		return nil
	}
	return format.Translate(req.Output.Schema)
}
