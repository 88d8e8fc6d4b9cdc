package models

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// counters are agents of all providers that must answer with a number. The last one gets the schema
// in words only.
const counters = `name: counters
model: openai/counting
tools: [calculate]
steps:
  - {name: chat, agent: {}, input: "chat ${input.text}", output: &counted {native: true, schema: {type: object, required: [n], properties: {n: {type: integer}}, additionalProperties: false}}}
  - {name: responses, agent: {model: openai-responses/counting}, input: "responses ${input.text}", output: *counted}
  - {name: anthropic, agent: {model: anthropic/counting}, input: "anthropic ${input.text}", output: *counted}
  - {name: gemini, agent: {model: gemini/counting}, input: "gemini ${input.text}", output: *counted}
  - {name: words, agent: {}, input: "words ${input.text}", output: {schema: {type: integer}}}
  - {name: sum, tool: calculate, args: {expression: "${steps.chat.n}+${steps.responses.n}+${steps.anthropic.n}+${steps.gemini.n}+${steps.words}"}}
`

// TestProvidersReceiveSchemas: each provider receives the schema of an answer in the form of its
// API, if the step says so, and the agent receives it in words. The answers stream and become
// outputs.
func TestProvidersReceiveSchemas(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, kit.SharedModel)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"OPENAI_BASE_URL=" + relay.url + "/v1", "ANTHROPIC_BASE_URL=" + relay.url, "GEMINI_BASE_URL=" + relay.url}
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "counters.yaml"), []byte(counters), 0o600); err != nil {
		t.Fatal(err)
	}
	p.InspectAtEnd(t)
	p.Start(t)

	in := kit.NewInput(kit.Marked("Count."))
	text := in.Messages[0].Content
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: "chat " + text, ResponseFormat: "json_schema"}, Response: kit.Response{Content: `{"n":1}`}, ChunkSize: 2},
		kit.Fixture{Match: kit.Match{UserMessage: "responses " + text}, Response: kit.Response{Content: `{"n":20}`}, ChunkSize: 2},
		kit.Fixture{Match: kit.Match{UserMessage: "anthropic " + text}, Response: kit.Response{Content: `{"n":300}`}, ChunkSize: 2},
		kit.Fixture{Match: kit.Match{UserMessage: "gemini " + text}, Response: kit.Response{Content: `{"n":4000}`}, ChunkSize: 2},
		kit.Fixture{Match: kit.Match{UserMessage: "words " + text}, Response: kit.Response{Content: "50000"}})
	f := p.FollowAgent(t, "/v1/agents/counters/runs", in)
	f.UntilSuccess(t)
	messages := kit.ShownMessages(t, in.Messages, f.Events)
	if last := messages[len(messages)-1]; last.Content != "54321" {
		t.Errorf("last message of the client = %q, want %q", last.Content, "54321")
	}

	const schema = `{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`
	for step, want := range map[string]string{
		"chat":      `{"response_format":{"json_schema":{"name":"output","strict":true,"schema":` + schema + `},"type":"json_schema"}}`,
		"responses": `{"text":{"format":{"name":"output","strict":true,"type":"json_schema","schema":` + schema + `}}}`,
		"anthropic": `{"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}}`,
		"gemini":    `{"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + schema + `}}`,
		"words":     `{}`,
	} {
		bodies := relay.containing(step + " " + text)
		if len(bodies) != 1 {
			t.Fatalf("%s: number of model calls = %d, want 1", step, len(bodies))
		}
		if diff := cmp.Diff(want, formatOf(t, bodies[0])); diff != "" {
			t.Errorf("%s is handed (-want +got):\n%s", step, diff)
		}
		if !strings.Contains(string(bodies[0]), "JSON that fits this JSON Schema") {
			t.Errorf("%s: request = %s, want the instructions for the schema", step, bodies[0])
		}
	}
}

// formatOf returns the members of a request that carry a schema.
func formatOf(t *testing.T, body []byte) string {
	t.Helper()
	var members struct {
		Chat      json.RawMessage `json:"response_format,omitempty"`
		Responses json.RawMessage `json:"text,omitempty"`
		Anthropic json.RawMessage `json:"output_config,omitempty"`
		Gemini    json.RawMessage `json:"generationConfig,omitempty"`
	}
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("the request is %s: %v", body, err)
	}
	raw, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
