package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const (
		elsewhere = "http://localhost:8000"
		schema    = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"why":{"type":["string","null"]}},"additionalProperties":false}`
		bounded   = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":1}},"additionalProperties":false}`
		loose     = `{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}`
		open      = `{"type":"object","properties":{"n":{"type":"integer"}}}`
	)
	many := wide(60)
	for name, test := range map[string]struct {
		baseURL, model string
		output         *llm.Output
		wantSchema     string
	}{
		"none":                                     {DefaultBaseURL, "claude-sonnet-4-5", nil, ""},
		"a schema":                                 {DefaultBaseURL, "claude-sonnet-4-5-20250929", &llm.Output{Schema: json.RawMessage(schema)}, schema},
		"without keywords that the API refuses":    {DefaultBaseURL, "claude-haiku-4-5", &llm.Output{Schema: json.RawMessage(bounded)}, loose},
		"an open object":                           {DefaultBaseURL, "claude-opus-5", &llm.Output{Schema: json.RawMessage(open), Native: &yes}, ""},
		"no schema is requested":                   {DefaultBaseURL, "claude-opus-5", &llm.Output{Schema: json.RawMessage(schema), Native: &no}, ""},
		"another server":                           {elsewhere, "claude-opus-5", &llm.Output{Schema: json.RawMessage(schema)}, ""},
		"another server that takes it":             {elsewhere, "m", &llm.Output{Schema: json.RawMessage(schema), Native: &yes}, schema},
		"a model that does not":                    {DefaultBaseURL, "claude-opus-4-1-20250805", &llm.Output{Schema: json.RawMessage(schema)}, ""},
		"a family that is not known to support it": {DefaultBaseURL, "claude-fable-5", &llm.Output{Schema: json.RawMessage(schema)}, ""},
		"a schema that may be too large":           {DefaultBaseURL, "claude-opus-5", &llm.Output{Schema: json.RawMessage(many)}, ""},
		"a large schema all the same":              {DefaultBaseURL, "claude-opus-5", &llm.Output{Schema: json.RawMessage(many), Native: &yes}, many},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params, err := New(Config{BaseURL: test.baseURL}).params(&llm.Request{Model: test.model, ReasoningEffort: "low", Output: test.output, Tools: []llm.Tool{{Name: "f"}}})
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(params.OutputConfig.Format)
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"type":"json_schema","schema":` + test.wantSchema + `}`; test.wantSchema != "" && string(data) != want {
				t.Errorf("output_config.format is\n%s\nwant\n%s", data, want)
			}
			if data, err = json.Marshal(params); err != nil {
				t.Fatal(err)
			}
			if sent := strings.Contains(string(data), `"format":{"type":"json_schema"`); sent != (test.wantSchema != "") {
				t.Errorf("request = %s, want a format: %t", data, test.wantSchema != "")
			}
			if effort := strings.Contains(string(data), `"effort":"low"`); effort != generationOf(test.model).adapts() {
				t.Errorf("effort is sent = %v, want %v", effort, !effort)
			}
		})
	}
}

// wide returns a schema with n properties, all required.
func wide(n int) string {
	var names, properties []string
	for i := range n {
		names = append(names, fmt.Sprintf(`"p%d"`, i))
		properties = append(properties, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
	}
	return `{"type":"object","required":[` + strings.Join(names, ",") + `],"properties":{` + strings.Join(properties, ",") + `},"additionalProperties":false}`
}
