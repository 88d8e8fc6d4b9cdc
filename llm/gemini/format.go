package gemini

import (
	"encoding/json"
	"regexp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// structured are the models for text that are known to take the schema of an answer: from 2.5 on,
// and only since 3 beside tools. Others refuse it, as Gemma and those for images and speech may.
var structured = regexp.MustCompile(`^gemini-(\d+(\.\d+)?-)?(pro|flash|flash-lite)(-latest|-preview)?(-\d{2}-\d{4})?$`)

// format is what the API can hold a model to. It knows more than this, such as ranges and lengths
// of lists, but refuses a schema that has too much of that.
var format = wire.Dialect{
	Keywords:  []string{"anyOf", "description", "format", "title"},
	Formats:   []string{"date-time", "date", "time"},
	PlainEnum: true,
	Depth:     8, Properties: 200, Values: 200, Text: 10_000,
}

// schemaOf returns the schema of an answer as the API is told it; nil = it is told none.
func (m *Model) schemaOf(req *llm.Request) json.RawMessage {
	model := generationOf(req.Model)
	known := m.config.BaseURL == DefaultBaseURL && structured.MatchString(req.Model) && model.since(2, 5) && (len(req.Tools) == 0 || model.since(3, 0))
	if !req.Output.Hands(known) {
		return nil
	}
	return format.Say(req.Output.Schema)
}
