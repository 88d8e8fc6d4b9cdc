package anthropic

import (
	"encoding/json"
	"regexp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// structured are the families whose models take the schema of an answer since 4.5.
var structured = regexp.MustCompile(`^claude-(opus|sonnet|haiku)-`)

// grammar is what the API says that it can hold a model to.
var grammar = wire.Dialect{
	Keywords: []string{"$ref", "anyOf", "const", "description", "format", "minItems", "title"},
	Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
	Object:   true, Closed: true, Flat: true,
	MinItems: 1, Optional: 24, Unions: 16,
}

// small returns what it has been seen to take. It makes a grammar of a schema, and refuses one that
// is too large; how large that is, it does not say.
func small() *wire.Dialect {
	d := grammar
	d.Keywords = d.Keywords[1:] // each $ref is as much again
	d.Depth, d.Properties, d.Values, d.Text, d.Optional, d.Unions = 6, 50, 100, 4_000, 12, 8
	return &d
}

// schemaOf returns the schema of an answer as the API is told it; nil = it is told none.
func (m *Model) schemaOf(req *llm.Request) json.RawMessage {
	known := m.config.BaseURL == DefaultBaseURL && structured.MatchString(req.Model) && generationOf(req.Model).since(4, 5)
	switch {
	case !req.Output.Hands(known):
		return nil
	case req.Output.Native == nil:
		return small().Say(req.Output.Schema)
	}
	return grammar.Say(req.Output.Schema)
}
