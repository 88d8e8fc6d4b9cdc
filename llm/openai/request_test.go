package openai

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

// sent streams req against a server and returns the request that the server received.
func sent(t *testing.T, config Config, req *llm.Request) (http.Header, map[string]json.RawMessage) {
	t.Helper()
	var header http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, encoder{}.Finish(llm.FinishStop, llm.Usage{}))
	}))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() { client.CloseIdleConnections(); server.Close() })
	config.BaseURL, config.HTTPClient = server.URL+"/v1", client
	for _, err := range New(config).Stream(t.Context(), req) {
		if err != nil {
			t.Fatalf("stream failed: %v", err)
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	return header, members
}

// userMessage returns a message of the user.
func userMessage(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleUser, Parts: parts} }

// equalJSON checks that two values are the same JSON.
func equalJSON(t *testing.T, want string, got json.RawMessage) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatalf("want %s: %v", want, err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatalf("got %s: %v", got, err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	no, limit, zero := false, 100, 0.0
	schema := `{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{"const":1.0}},"required":["z"]}`
	header, body := sent(t, Config{APIKey: "k"}, &llm.Request{
		Model:             "m",
		Messages:          []llm.Message{userMessage(llm.Text{Text: "Hi"})},
		Tools:             []llm.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(schema)}, {Name: "g"}},
		ParallelToolCalls: &no,
		MaxOutputTokens:   &limit,
		Temperature:       &zero,
		ReasoningEffort:   "low",
		IdempotencyKey:    "run/1",
	})
	if got := header.Get("Idempotency-Key"); got != "run/1" {
		t.Errorf("Idempotency-Key = %q, want run/1", got)
	}
	if got := header.Get("Authorization"); got != "Bearer k" {
		t.Errorf("Authorization = %q, want %q", got, "Bearer k")
	}
	for member, want := range map[string]string{
		"model":               `"m"`,
		"stream":              `true`,
		"stream_options":      `{"include_usage":true}`,
		"parallel_tool_calls": `false`,
		"max_tokens":          `100`,
		"temperature":         `0`,
		"reasoning_effort":    `"low"`,
		"messages":            `[{"role":"user","content":"Hi"}]`,
		// The comparison is by text and not by value: the schema must be sent byte for byte.
		"tools": `[{"function":{"name":"f","description":"d","parameters":` + schema + `},"type":"function"},{"function":{"name":"g"},"type":"function"}]`,
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

func TestRequestOmitsUnsetParameters(t *testing.T) {
	t.Parallel()
	yes := true
	header, body := sent(t, Config{}, &llm.Request{Model: "m", ParallelToolCalls: &yes, Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
	for _, name := range []string{"Authorization", "Idempotency-Key"} {
		if values, ok := header[name]; ok {
			t.Errorf("%s is sent: %q", name, values)
		}
	}
	for _, member := range []string{"tools", "parallel_tool_calls", "max_tokens", "temperature", "reasoning_effort"} {
		if value, ok := body[member]; ok {
			t.Errorf("%s is sent: %s", member, value)
		}
	}
}

func TestInvalidParametersAreNotSent(t *testing.T) {
	t.Parallel()
	model := New(Config{APIKey: "k"})
	_, err := model.params(&llm.Request{Tools: []llm.Tool{{Name: "f", Parameters: json.RawMessage(`{"a":`)}}})
	failure, ok := err.(*llm.Error)
	if !ok || failure.Code != llm.CodeInvalidRequest {
		t.Errorf("error is %v, want %q", err, llm.CodeInvalidRequest)
	}
}

func TestRequestThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	model := New(Config{BaseURL: "http://127.0.0.1:1"})
	for _, err := range model.Stream(t.Context(), &llm.Request{Model: "m", Temperature: &nan}) {
		failure, ok := err.(*llm.Error)
		if !ok || failure.Code != llm.CodeInvalidRequest || failure.Retryable() {
			t.Errorf("error is %v, want %q", err, llm.CodeInvalidRequest)
		}
	}
}

func TestMaxTokensField(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{}, "max_completion_tokens"},
		{Config{BaseURL: DefaultBaseURL + "/"}, "max_completion_tokens"},
		{Config{BaseURL: "http://localhost:8000/v1"}, "max_tokens"},
		{Config{BaseURL: "http://localhost:8000/v1", MaxTokensField: "n"}, "n"},
	} {
		if got := New(test.config).config.MaxTokensField; got != test.want {
			t.Errorf("%+v: field is %q, want %q", test.config, got, test.want)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const image = "iVBORw0KGgo="
	call := []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g"}, {ID: "c", Name: "h", Arguments: `{"x":"ha`}}
	thought := []llm.Reasoning{
		{Text: "Hm", Provider: "openai", Data: json.RawMessage(`"reasoning_content"`)},
		{Text: "m.", Provider: "openai", Data: json.RawMessage(`"reasoning_content"`)},
		{Text: "not ours", Provider: "anthropic", Data: json.RawMessage(`"reasoning_content"`)},
		{Text: "not known", Provider: "openai", Data: json.RawMessage(`"role"`)},
	}
	for name, test := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"every role": {
			[]llm.Message{
				{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: "Be "}, llm.Text{Text: "brief."}}},
				{Role: llm.RoleUser, Name: "ann", Parts: []llm.Part{llm.Text{Text: "Hi"}}},
				{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Ok"}}, ToolCalls: call},
				{Role: llm.RoleTool, ToolCallID: "a", Parts: []llm.Part{llm.Text{Text: "1"}, llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"}}},
				{Role: llm.RoleTool, ToolCallID: "b"},
			},
			`[{"role":"system","content":"Be brief."},
			  {"role":"user","name":"ann","content":"Hi"},
			  {"role":"assistant","content":"Ok","tool_calls":[
			    {"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
			    {"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},
			    {"id":"c","type":"function","function":{"name":"h","arguments":"{\"arguments\":\"{\\\"x\\\":\\\"ha\"}"}}]},
			  {"role":"tool","tool_call_id":"a","content":"1"},
			  {"role":"tool","tool_call_id":"b","content":""}]`,
		},
		"media that the API has a place for": {
			[]llm.Message{userMessage(
				llm.Text{Text: "See"},
				llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: image},
				llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"},
				llm.Media{Kind: llm.MediaAudio, MIME: "audio/mpeg", Data: image},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: image, Name: "a.pdf"},
				llm.Media{Kind: llm.MediaDocument, MIME: "text/csv; charset=utf-8", Data: "YSxi", Name: "a.csv"},
			)},
			`[{"role":"user","content":[
			  {"type":"text","text":"See"},
			  {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},
			  {"type":"image_url","image_url":{"url":"https://x.example/i.png"}},
			  {"type":"input_audio","input_audio":{"data":"iVBORw0KGgo=","format":"mp3"}},
			  {"type":"file","file":{"file_data":"data:application/pdf;base64,iVBORw0KGgo=","filename":"a.pdf"}},
			  {"type":"text","text":"a.csv:\n\na,b"}]}]`,
		},
		"unusable media is left out": {
			[]llm.Message{userMessage(
				llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", Data: image},
				llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "not base64"},
				llm.Media{Kind: llm.MediaImage, MIME: "text/html", Data: image},
				llm.Media{Kind: llm.MediaImage, URL: "file:///etc/passwd"},
				llm.Media{Kind: llm.MediaImage, URL: "http://"},
				llm.Media{Kind: llm.MediaImage},
				llm.Media{Kind: llm.MediaAudio, MIME: "audio/ogg", Data: image},
				llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", URL: "https://x.example/a.wav"},
				llm.Media{Kind: llm.MediaDocument, URL: "https://x.example/a.pdf"},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/zip", Data: image},
				llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "/w=="},
				llm.Media{Kind: llm.MediaImage, MIME: "image/svg+xml", Data: image},
				llm.Media{Kind: "hologram", Data: image},
				llm.Text{},
				llm.Text{Text: "See"},
			)},
			`[{"role":"user","content":"See"}]`,
		},
		"messages without content are left out": {
			[]llm.Message{userMessage(llm.Media{Kind: llm.MediaVideo}), {Role: llm.RoleAssistant}, {Role: "narrator"}, userMessage(llm.Text{Text: "Hi"})},
			`[{"role":"user","content":"Hi"}]`,
		},
		"a name that the API refuses is left out": {
			[]llm.Message{{Role: llm.RoleUser, Name: "Ann Lee", Parts: []llm.Part{llm.Text{Text: "Hi"}}}},
			`[{"role":"user","content":"Hi"}]`,
		},
		"reasoning of this turn goes back": {
			[]llm.Message{
				userMessage(llm.Text{Text: "1"}),
				{Role: llm.RoleAssistant, ToolCalls: call[:1], Reasoning: thought},
				{Role: llm.RoleTool, ToolCallID: "a"},
				userMessage(llm.Text{Text: "2"}),
				{Role: llm.RoleAssistant, ToolCalls: call[:1], Reasoning: thought},
			},
			`[{"role":"user","content":"1"},
			  {"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
			  {"role":"tool","tool_call_id":"a","content":""},
			  {"role":"user","content":"2"},
			  {"role":"assistant","reasoning_content":"Hmm.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			params, err := New(Config{}).params(&llm.Request{Model: "m", Messages: test.messages})
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
			equalJSON(t, test.want, body["messages"])
		})
	}
}
