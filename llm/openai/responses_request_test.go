package openai

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/llm"
)

// requestBody returns the members of the request that a model would send.
func requestBody(t *testing.T, req *llm.Request) map[string]json.RawMessage {
	t.Helper()
	params, err := NewResponses(Config{}).params(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestResponsesRequest(t *testing.T) {
	t.Parallel()
	no, limit, zero := false, 100, 0.0
	schema := `{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{"const":1.0}},"required":["z"]}`
	body := requestBody(t, &llm.Request{
		Model:             "gpt-5-mini",
		Messages:          []llm.Message{userMessage(llm.Text{Text: "Hi"})},
		Tools:             []llm.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(schema)}, {Name: "g"}},
		ParallelToolCalls: &no,
		MaxOutputTokens:   &limit,
		Temperature:       &zero,
		ReasoningEffort:   "high",
	})
	for member, want := range map[string]string{
		"model":               `"gpt-5-mini"`,
		"store":               `false`,
		"include":             `["reasoning.encrypted_content"]`,
		"reasoning":           `{"effort":"high","summary":"auto"}`,
		"parallel_tool_calls": `false`,
		"max_output_tokens":   `100`,
		"temperature":         `0`,
		"input":               `[{"role":"user","content":"Hi"}]`,
		// The comparison is by text and not by value: the schema must be sent byte for byte.
		"tools": `[{"strict":false,"name":"f","description":"d","type":"function","parameters":` + schema + `},` +
			`{"strict":false,"name":"g","type":"function","parameters":{"type":"object","properties":{}}}]`,
	} {
		if got := string(body[member]); got != want && member == "tools" {
			t.Errorf("tools are\n%s\nwant\n%s", got, want)
		}
		equalJSON(t, want, body[member])
		delete(body, member)
	}
	if len(body) != 0 {
		t.Errorf("further members = %s, want none", body)
	}
}

func TestResponsesRequestOmitsUnsetParameters(t *testing.T) {
	t.Parallel()
	yes := true
	body := requestBody(t, &llm.Request{Model: "m", ParallelToolCalls: &yes, Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
	for _, member := range []string{"tools", "parallel_tool_calls", "max_output_tokens", "temperature", "instructions"} {
		if value, ok := body[member]; ok {
			t.Errorf("%s is sent: %s", member, value)
		}
	}
	equalJSON(t, `{"summary":"auto"}`, body["reasoning"])
}

// TestModelsWithoutReasoning: these models refuse reasoning parameters, so the request omits them
// unless the caller sets an effort. Then the caller gets the provider's error.
func TestModelsWithoutReasoning(t *testing.T) {
	t.Parallel()
	for model, thinks := range map[string]bool{
		"gpt-4.1-mini": false, "gpt-4o": false, "ft:gpt-4.1-2025-04-14:org::id": false, "chatgpt-4o-latest": false, "gpt-5-chat-latest": false,
		"gpt-5": true, "gpt-5.6-sol": true, "o4-mini": true, "ft:o4-mini:org::id": true, "openai/gpt-oss-120b": true,
	} {
		body := requestBody(t, &llm.Request{Model: model})
		if _, asks := body["include"]; asks != thinks {
			t.Errorf("%s: encrypted reasoning requested = %v, want %v", model, asks, thinks)
		}
		if _, asks := body["reasoning"]; asks != thinks {
			t.Errorf("%s: summary requested = %v, want %v", model, asks, thinks)
		}
		equalJSON(t, `"low"`, reasoningOf(t, requestBody(t, &llm.Request{Model: model, ReasoningEffort: "low"}))["effort"])
	}
}

// reasoningOf returns the reasoning member of a request.
func reasoningOf(t *testing.T, body map[string]json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body["reasoning"], &members); err != nil {
		t.Fatal(err)
	}
	return members
}

func TestResponsesInput(t *testing.T) {
	t.Parallel()
	const image = "iVBORw0KGgo="
	for name, test := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"every role": {
			[]llm.Message{
				{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: "Be "}, llm.Text{Text: "brief."}}},
				{Role: llm.RoleUser, Name: "ann", Parts: []llm.Part{llm.Text{Text: "Hi"}}},
				{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Ok"}}, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g"}}},
				{Role: llm.RoleTool, ToolCallID: "a", Parts: []llm.Part{llm.Text{Text: "1"}}},
				{Role: llm.RoleTool, ToolCallID: "b"},
			},
			`[{"role":"system","content":"Be brief."},
			  {"role":"user","content":"Hi"},
			  {"role":"assistant","content":"Ok"},
			  {"type":"function_call","call_id":"a","name":"f","arguments":"{\"x\":1}"},
			  {"type":"function_call","call_id":"b","name":"g","arguments":"{}"},
			  {"type":"function_call_output","call_id":"a","output":"1"},
			  {"type":"function_call_output","call_id":"b","output":""}]`,
		},
		"media that the API has a place for": {
			[]llm.Message{userMessage(
				llm.Text{Text: "See"},
				llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: image},
				llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: image, Name: "a.PDF"},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/rtf", Data: image},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "https://x.example/a.pdf", Name: "a.pdf"},
				llm.Media{Kind: llm.MediaDocument, MIME: "text/csv; charset=utf-8", Data: "YSxi", Name: "a.csv"},
			)},
			`[{"role":"user","content":[
			  {"type":"input_text","text":"See"},
			  {"type":"input_image","detail":"auto","image_url":"data:image/png;base64,iVBORw0KGgo="},
			  {"type":"input_image","detail":"auto","image_url":"https://x.example/i.png"},
			  {"type":"input_file","file_data":"data:application/pdf;base64,iVBORw0KGgo=","filename":"a.PDF"},
			  {"type":"input_file","file_data":"data:application/rtf;base64,iVBORw0KGgo=","filename":"document.rtf"},
			  {"type":"input_file","file_url":"https://x.example/a.pdf"},
			  {"type":"input_text","text":"a.csv:\n\na,b"}]}]`,
		},
		"media that a tool returned": {
			[]llm.Message{
				{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f"}}},
				{Role: llm.RoleTool, ToolCallID: "a", Parts: []llm.Part{
					llm.Text{Text: "A chart"},
					llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: image},
					llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "https://x.example/a.pdf"},
				}},
			},
			`[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
			  {"type":"function_call_output","call_id":"a","output":[
			    {"type":"input_text","text":"A chart"},
			    {"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="},
			    {"type":"input_file","file_url":"https://x.example/a.pdf"}]}]`,
		},
		"unusable media is left out": {
			[]llm.Message{userMessage(
				llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", Data: image},
				llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: image},
				llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "not base64"},
				llm.Media{Kind: llm.MediaImage, MIME: "image/svg+xml", Data: image},
				llm.Media{Kind: llm.MediaImage, URL: "file:///etc/passwd"},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "file:///etc/passwd"},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf"},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/zip", Data: image},
				llm.Media{Kind: llm.MediaDocument, URL: "https://x.example/a.pdf"},
				llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "/w=="},
				llm.Text{},
				llm.Text{Text: "See"},
			)},
			`[{"role":"user","content":"See"}]`,
		},
		"messages without content are left out": {
			[]llm.Message{userMessage(llm.Media{Kind: llm.MediaVideo}), {Role: llm.RoleAssistant}, {Role: "narrator"}, userMessage(llm.Text{Text: "Hi"})},
			`[{"role":"user","content":"Hi"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equalJSON(t, test.want, requestBody(t, &llm.Request{Model: "m", Messages: test.messages})["input"])
		})
	}
}

func TestResponsesRefuseParametersThatAreNotJSON(t *testing.T) {
	t.Parallel()
	_, err := NewResponses(Config{APIKey: "k"}).params(&llm.Request{Tools: []llm.Tool{{Name: "f", Parameters: json.RawMessage(`{"a":`)}}})
	failure, ok := err.(*llm.Error)
	if !ok || failure.Code != llm.CodeInvalidRequest {
		t.Errorf("error is %v, want %q", err, llm.CodeInvalidRequest)
	}
}
