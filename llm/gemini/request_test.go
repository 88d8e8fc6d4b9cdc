package gemini

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
func sent(t *testing.T, config Config, req *llm.Request) (*http.Request, map[string]json.RawMessage) {
	t.Helper()
	var request *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request = r
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
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	return request, members
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
	schema := `{"type":"object","properties":{"z":{"type":"integer","maximum":12345678901234567890},"a":{"const":"<1.0>"}},"required":["z"]}`
	request, body := sent(t, Config{APIKey: "k"}, &llm.Request{
		Model:             "gemini-2.5-flash",
		Messages:          []llm.Message{textMessage(llm.RoleSystem, "Be brief."), userMessage(llm.Text{Text: "Hi"}), textMessage(llm.RoleSystem, "Very.")},
		Tools:             []llm.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(schema)}, {Name: "g"}},
		ParallelToolCalls: &no,
		MaxOutputTokens:   &limit,
		Temperature:       &zero,
		ReasoningEffort:   "medium",
		IdempotencyKey:    "run/1",
	})
	if got := request.Header.Get("X-Goog-Api-Key"); got != "k" {
		t.Errorf("X-Goog-Api-Key = %q, want k", got)
	}
	if got, want := request.URL.String(), "/proxy/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"; got != want {
		t.Errorf("URL is %q, want %q", got, want)
	}
	for member, want := range map[string]string{
		"systemInstruction": `{"parts":[{"text":"Be brief."},{"text":"Very."}]}`,
		"contents":          `[{"role":"user","parts":[{"text":"Hi"}]}]`,
		"tools":             `[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":` + schema + `},{"name":"g"}]}]`,
		"generationConfig":  `{"temperature":0,"maxOutputTokens":100,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192}}`,
	} {
		if member == "tools" && !strings.Contains(string(body[member]), schema) {
			t.Errorf("tools = %s\nwant the unchanged schema", body[member])
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
	request, body := sent(t, Config{}, &llm.Request{Model: "models/x/../y", Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
	if values, ok := request.Header["X-Goog-Api-Key"]; ok {
		t.Errorf("X-Goog-Api-Key is sent: %q", values)
	}
	if got, want := request.URL.EscapedPath(), "/proxy/v1beta/models/x%2F..%2Fy:streamGenerateContent"; got != want {
		t.Errorf("path is %q, want %q", got, want)
	}
	if len(body) != 1 {
		t.Errorf("sent was %s, want contents alone", body)
	}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gemini-3-pro-preview":  `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"high"}}`,
		"gemini-3.1-flash-lite": `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"high"}}`,
		"gemini-flash-latest":   `{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"high"}}`,
		"gemini-2.5-pro":        `{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}}`,
		"gemini-2.0-flash":      `null`,
		"gemini-1.5-pro-002":    `null`,
	} {
		_, body := sent(t, Config{}, &llm.Request{Model: model, ReasoningEffort: "high", Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
		if body["generationConfig"] == nil {
			body["generationConfig"] = json.RawMessage(`null`)
		}
		equalJSON(t, want, body["generationConfig"])
	}
}

func TestInvalidParametersAreNotSent(t *testing.T) {
	t.Parallel()
	_, err := New(Config{APIKey: "k"}).body(&llm.Request{Tools: []llm.Tool{{Name: "f", Parameters: json.RawMessage(`{"a":`)}}})
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
