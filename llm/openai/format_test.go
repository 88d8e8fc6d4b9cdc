package openai

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/llm"
)

const (
	// complete is a schema as the API's strict mode requires it; optional is not.
	complete = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","maximum":12345678901234567890}},"additionalProperties":false}`
	optional = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"why":{"type":"string"}},"additionalProperties":false}`
	bounded  = `{"type":"object","required":["s"],"properties":{"s":{"type":"string","maxLength":9}},"additionalProperties":false}`
	loose    = `{"additionalProperties":false,"properties":{"s":{"type":"string"}},"required":["s"],"type":"object"}`
)

func TestFormat(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const elsewhere = "http://localhost:8000/v1"
	for name, test := range map[string]struct {
		baseURL, model         string
		output                 *llm.Output
		wantStrict, wantSchema string
	}{
		"none":                    {DefaultBaseURL, "gpt-5-mini", nil, "", ""},
		"a schema in strict mode": {DefaultBaseURL, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(complete)}, "true", complete},
		"without keywords that strict mode refuses": {DefaultBaseURL, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(bounded)}, "true", loose},
		"a schema without strict mode":              {DefaultBaseURL, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(optional)}, "false", optional},
		"a list":                                    {DefaultBaseURL, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(`{"type":"array"}`)}, "", ""},
		"cases":                                     {DefaultBaseURL, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(`{"type":"object","anyOf":[{}]}`), Native: &yes}, "", ""},
		"no JSON":                                   {DefaultBaseURL, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(`{"type"`), Native: &yes}, "", ""},
		"no schema is requested":                    {DefaultBaseURL, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(complete), Native: &no}, "", ""},
		"another server":                            {elsewhere, "gpt-5-mini", &llm.Output{Schema: json.RawMessage(complete)}, "", ""},
		"another server that supports it":           {elsewhere, "llama", &llm.Output{Schema: json.RawMessage(complete), Native: &yes}, "true", complete},
		"a model without support":                   {DefaultBaseURL, "gpt-4-turbo", &llm.Output{Schema: json.RawMessage(complete)}, "", ""},
		"a model that is configured to support it":  {DefaultBaseURL, "ft:gpt-4o:me", &llm.Output{Schema: json.RawMessage(complete), Native: &yes}, "true", complete},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := &llm.Request{Model: test.model, Output: test.output, Tools: []llm.Tool{{Name: "f"}}}
			chat, err := New(Config{BaseURL: test.baseURL}).params(req)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if test.wantSchema != "" {
				want = `{"json_schema":{"name":"output","strict":` + test.wantStrict + `,"schema":` + test.wantSchema + `},"type":"json_schema"}`
			}
			if got := member(t, chat, "response_format"); got != want {
				t.Errorf("response_format is\n%s\nwant\n%s", got, want)
			}
			response, err := NewResponses(Config{BaseURL: test.baseURL}).params(req)
			if err != nil {
				t.Fatal(err)
			}
			if test.wantSchema != "" {
				want = `{"format":{"name":"output","strict":` + test.wantStrict + `,"type":"json_schema","schema":` + test.wantSchema + `}}`
			}
			if got := member(t, response, "text"); got != want {
				t.Errorf("text is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// member returns a member of a request, byte for byte; empty = the request does not have it.
func member(t *testing.T, params any, name string) string {
	t.Helper()
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatal(err)
	}
	return string(body[name])
}

func TestStructuredModels(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{
		"gpt-4o": true, "gpt-4o-mini-2024-07-18": true, "gpt-4o-2024-08-06": true, "gpt-4o-2024-05-13": false, "chatgpt-4o-latest": false,
		"gpt-4.1": true, "gpt-4.1-nano": true, "gpt-4": false, "gpt-4-turbo": false, "gpt-4-turbo-2024-04-09": false, "gpt-3.5-turbo": false,
		"gpt-5": true, "gpt-5-mini-2025-08-07": true, "gpt-5.1-codex-max": true, "gpt-5-chat-latest": false, "gpt-10.2-pro": true,
		"gpt-4o-audio-preview": false, "gpt-4o-search-preview": false, "gpt-image-1": false,
		"o1": true, "o1-mini": false, "o1-preview": false, "o3": true, "o3-mini-2025-01-31": true, "o4-mini": true, "o4-mini-deep-research": false,
		"ft:gpt-4o-2024-08-06:me": false, "": false,
	} {
		f := New(Config{}).formatOf(&llm.Request{Model: model, Output: &llm.Output{Schema: json.RawMessage(complete)}})
		if got := f != nil; got != want {
			t.Errorf("%q is handed a schema: %v, want %v", model, got, want)
		}
	}
}
