package anthropic

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

// sent streams req against a server and returns the request that the server received.
func sent(t *testing.T, config Config, req *llm.Request) (http.Header, map[string]json.RawMessage) {
	t.Helper()
	var header http.Header
	var path string
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, path = r.Header, r.URL.Path
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, (&encoder{}).Finish(llm.FinishStop, llm.Usage{}))
	}))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() { client.CloseIdleConnections(); server.Close() })
	config.BaseURL, config.HTTPClient = server.URL+"/proxy/", client
	for _, err := range New(config).Stream(t.Context(), req) {
		if err != nil {
			t.Fatalf("stream failed: %v", err)
		}
	}
	if path != "/proxy/v1/messages" {
		t.Errorf("path = %q, want /proxy/v1/messages", path)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	return header, members
}

// userMessage returns a message of the user.
func userMessage(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleUser, Parts: parts} }

// textMessage returns a message with text.
func textMessage(role llm.Role, text string) llm.Message {
	return llm.Message{Role: role, Parts: []llm.Part{llm.Text{Text: text}}}
}

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
		Model:             "claude-opus-4-1",
		Messages:          []llm.Message{textMessage(llm.RoleSystem, "Be brief."), userMessage(llm.Text{Text: "Hi"}), textMessage(llm.RoleSystem, "Very.")},
		Tools:             []llm.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(schema)}, {Name: "g"}},
		ParallelToolCalls: &no,
		MaxOutputTokens:   &limit,
		Temperature:       &zero,
		IdempotencyKey:    "run/1",
	})
	for name, want := range map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Authorization": "", "Anthropic-Beta": ""} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	const cached = `"cache_control":{"type":"ephemeral"}`
	for member, want := range map[string]string{
		"model":       `"claude-opus-4-1"`,
		"stream":      `true`,
		"max_tokens":  `100`,
		"temperature": `0`,
		"tool_choice": `{"type":"auto","disable_parallel_tool_use":true}`,
		"system":      `[{"type":"text","text":"Be brief."},{"type":"text","text":"Very.",` + cached + `}]`,
		"messages":    `[{"role":"user","content":[{"type":"text","text":"Hi",` + cached + `}]}]`,
		"tools":       `[{"name":"f","description":"d","input_schema":` + schema + `},{"name":"g","input_schema":{"type":"object"},` + cached + `}]`,
	} {
		if member == "tools" && !strings.Contains(string(body[member]), `"input_schema":`+schema) {
			t.Errorf("tools = %s\nwant the schema byte for byte", body[member])
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
	for _, name := range []string{"X-Api-Key", "Authorization", "Anthropic-Beta", "Traceparent"} {
		if values, ok := header[name]; ok {
			t.Errorf("%s is sent: %q", name, values)
		}
	}
	for _, member := range []string{"tools", "tool_choice", "temperature", "system", "thinking", "output_config"} {
		if value, ok := body[member]; ok {
			t.Errorf("%s is sent: %s", member, value)
		}
	}
	equalJSON(t, "8192", body["max_tokens"])
}

func TestInvalidParametersAreNotSent(t *testing.T) {
	t.Parallel()
	_, err := New(Config{APIKey: "k"}).params(&llm.Request{Tools: []llm.Tool{{Name: "f", Parameters: json.RawMessage(`{"a":`)}}})
	failure, ok := err.(*llm.Error)
	if !ok || failure.Code != llm.CodeInvalidRequest {
		t.Errorf("error is %v, want %q", err, llm.CodeInvalidRequest)
	}
}

func TestRequestThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, err := range New(Config{BaseURL: "http://127.0.0.1:1"}).Stream(t.Context(), &llm.Request{Model: "m", Temperature: &nan}) {
		failure, ok := err.(*llm.Error)
		if !ok || failure.Code != llm.CodeInvalidRequest || failure.Retryable() {
			t.Errorf("error is %v, want %q", err, llm.CodeInvalidRequest)
		}
	}
}

func TestDefaultMaxTokens(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]int{
		"claude-opus-5-5":            64_000,
		"claude-sonnet-5":            64_000,
		"claude-opus-4-6@20260101":   64_000,
		"claude-haiku-4-5-20251001":  64_000,
		"claude-sonnet-4-20250514":   32_000,
		"claude-opus-4-1":            32_000,
		"claude-opus-4-0":            32_000,
		"claude-3-7-sonnet-20250219": 4_096,
		"claude-3-opus-20240229":     4_096,
		"claude-mythos-preview":      8_192,
		"glm-5":                      8_192,
	} {
		if got := DefaultMaxTokens(model); got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	const adaptive = `{"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}}`
	small, large := 2_000, 3_000
	for _, test := range []struct {
		model string
		limit *int
		want  string
	}{
		{"claude-sonnet-5-5", nil, adaptive},
		{"claude-opus-4-6", nil, adaptive},
		{"claude-haiku-4-5", nil, `{"thinking":{"type":"enabled","budget_tokens":4096}}`},
		{"claude-haiku-4-5", &large, `{"thinking":{"type":"enabled","budget_tokens":1500}}`},
		{"claude-haiku-4-5", &small, `{}`}, // below the API's minimum
		{"claude-3-5-haiku", nil, `{}`},
		{"m", nil, `{}`},
	} {
		_, body := sent(t, Config{}, &llm.Request{Model: test.model, ReasoningEffort: "low", MaxOutputTokens: test.limit, Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
		for _, member := range []string{"model", "stream", "max_tokens", "messages"} {
			delete(body, member)
		}
		rest, _ := json.Marshal(body)
		t.Logf("%s, limit %v", test.model, test.limit)
		equalJSON(t, test.want, rest)
	}
}
