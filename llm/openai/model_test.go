package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/llm"
)

// call streams one completion and returns its error as an *llm.Error.
func call(t *testing.T, config Config) *llm.Error {
	t.Helper()
	for _, err := range New(config).Stream(t.Context(), &llm.Request{Model: "m", Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}}) {
		var failure *llm.Error
		if errors.As(err, &failure) {
			return failure
		}
		if err != nil {
			t.Fatalf("error is %T: %v", err, err)
		}
	}
	return nil
}

func TestMissingKey(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", DefaultBaseURL, DefaultBaseURL + "/"} {
		env := map[string]string{"OPENAI_BASE_URL": base}
		failure := call(t, FromEnv(func(name string) string { return env[name] }))
		if failure == nil || failure.Code != llm.CodeUnauthorized || !strings.Contains(failure.Error(), "OPENAI_API_KEY") {
			t.Errorf("base URL %q: error is %v, want %q naming OPENAI_API_KEY", base, failure, llm.CodeUnauthorized)
		}
	}
}

func TestInvalidBaseURL(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"localhost:8000", "ftp://x.example", "http://", "http://[::1", "/v1"} {
		failure := call(t, Config{APIKey: "k", BaseURL: base})
		if failure == nil || failure.Code != llm.CodeInvalidRequest || !strings.Contains(failure.Error(), "OPENAI_BASE_URL") {
			t.Errorf("base URL %q: error is %v, want %q naming OPENAI_BASE_URL", base, failure, llm.CodeInvalidRequest)
		}
	}
}

// TestEnvironmentIsNotRead: the SDK would otherwise add settings from the environment.
func TestEnvironmentIsNotRead(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "sk-ambient", "OPENAI_ORG_ID": "ambient", "OPENAI_CUSTOM_HEADERS": "X-Ambient: 1", "OPENAI_BASE_URL": "http://ambient.example",
	} {
		t.Setenv(name, value)
	}
	header, _ := sent(t, Config{}, &llm.Request{Model: "m", Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
	for _, name := range []string{"Authorization", "OpenAI-Organization", "X-Ambient"} {
		if value := header.Get(name); value != "" {
			t.Errorf("%s = %q, want none", name, value)
		}
	}
}

func TestResponsesWithoutStream(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status            int
		contentType, body string
		want              llm.Code
	}{
		"a page":             {200, "text/html; charset=utf-8", "<html>Welcome</html>", llm.CodeMalformedResponse},
		"a whole completion": {200, "application/json", `{"choices":[{"message":{"content":"Hi"}}]}`, llm.CodeMalformedResponse},
		"an error":           {200, "application/json", `{"error":{"code":"model_not_found","message":"no such model"}}`, llm.CodeNotFound},
		"quota":              {429, "application/json", `{"error":{"type":"insufficient_quota","message":"pay"}}`, llm.CodeQuotaExceeded},
		"context":            {400, "application/json", `{"error":{"code":"context_length_exceeded","message":"long"}}`, llm.CodeContextLength},
		"filter":             {400, "application/json", `{"error":{"code":"content_filter","message":"filtered"}}`, llm.CodeContentFilter},
		"a bare string":      {404, "application/json", `{"error":"model not found"}`, llm.CodeNotFound},
		"a detail":           {422, "application/json", `{"detail":[{"loc":["body"],"msg":"no"}]}`, llm.CodeInvalidRequest},
		"a list":             {400, "application/json", `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, llm.CodeInvalidRequest},
		"nothing":            {503, "", "", llm.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			client := &http.Client{Transport: &http.Transport{}}
			t.Cleanup(func() { client.CloseIdleConnections(); server.Close() })
			failure := call(t, Config{BaseURL: server.URL, HTTPClient: client})
			if failure == nil || failure.Code != test.want || failure.Message == "" {
				t.Errorf("error is %+v, want %q with a message", failure, test.want)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func Example() {
	model := New(FromEnv(os.Getenv))
	question := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "Why is the sky blue?"}}}
	var answer llm.Collector
	for chunk, err := range model.Stream(context.Background(), &llm.Request{Model: "gpt-5-mini", Messages: []llm.Message{question}}) {
		var failure *llm.Error
		if errors.As(err, &failure) && failure.Retryable() {
			return // repeat after failure.RetryAfter
		}
		if err != nil {
			return
		}
		answer.Add(chunk)
	}
	fmt.Println(answer.Message().Text(), answer.Finish().Reason)
}
