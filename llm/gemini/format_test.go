package gemini

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/llm"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const (
		elsewhere = "http://localhost:8000"
		schema    = `{"type":"object","required":["n"],"properties":{"n":{"type":["integer","null"]},"<":{"type":"string"}}}`
		bounded   = `{"type":"array","maxItems":3,"items":{"type":"string"}}`
		loose     = `{"items":{"type":"string"},"type":"array"}`
	)
	tools := []llm.Tool{{Name: "f"}}
	for name, test := range map[string]struct {
		baseURL, model string
		tools          []llm.Tool
		output         *llm.Output
		wantSchema     string
	}{
		"none":     {DefaultBaseURL, "gemini-2.5-flash", nil, nil, ""},
		"a schema": {DefaultBaseURL, "gemini-2.5-flash", nil, &llm.Output{Schema: json.RawMessage(schema)}, schema},
		"without keywords that may exceed a limit": {DefaultBaseURL, "gemini-2.5-flash", nil, &llm.Output{Schema: json.RawMessage(bounded)}, loose},
		"any value":                    {DefaultBaseURL, "gemini-2.5-flash", nil, &llm.Output{Schema: json.RawMessage(`{}`), Native: &yes}, ""},
		"with tools":                   {DefaultBaseURL, "gemini-2.5-flash", tools, &llm.Output{Schema: json.RawMessage(schema)}, ""},
		"with tools, since 3":          {DefaultBaseURL, "gemini-3-pro-preview", tools, &llm.Output{Schema: json.RawMessage(schema)}, schema},
		"no schema is requested":       {DefaultBaseURL, "gemini-3-pro-preview", nil, &llm.Output{Schema: json.RawMessage(schema), Native: &no}, ""},
		"another server":               {elsewhere, "gemini-3-pro-preview", nil, &llm.Output{Schema: json.RawMessage(schema)}, ""},
		"another server that takes it": {elsewhere, "m", tools, &llm.Output{Schema: json.RawMessage(schema), Native: &yes}, schema},
		"a model from before":          {DefaultBaseURL, "gemini-2.0-flash", nil, &llm.Output{Schema: json.RawMessage(schema)}, ""},
		"a model for images":           {DefaultBaseURL, "gemini-2.5-flash-image", nil, &llm.Output{Schema: json.RawMessage(schema)}, ""},
		"the model of today":           {DefaultBaseURL, "gemini-flash-latest", tools, &llm.Output{Schema: json.RawMessage(schema)}, schema},
		"another family":               {DefaultBaseURL, "gemma-3-27b-it", nil, &llm.Output{Schema: json.RawMessage(schema)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := New(Config{BaseURL: test.baseURL}).body(&llm.Request{Model: test.model, Output: test.output, Tools: test.tools})
			if err != nil {
				t.Fatal(err)
			}
			data, err := encode(&body{Config: b.Config})
			if err != nil {
				t.Fatal(err)
			}
			want := `{"contents":null}` + "\n"
			if test.wantSchema != "" {
				want = `{"contents":null,"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + test.wantSchema + "}}\n"
			}
			if string(data) != want {
				t.Errorf("sent is\n%swant\n%s", data, want)
			}
		})
	}
}
