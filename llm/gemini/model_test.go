package gemini

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
		env := map[string]string{"GEMINI_BASE_URL": base}
		failure := call(t, FromEnv(func(name string) string { return env[name] }))
		if failure == nil || failure.Code != llm.CodeUnauthorized || !strings.Contains(failure.Error(), "GEMINI_API_KEY") {
			t.Errorf("base URL %q: error is %v, want %q naming GEMINI_API_KEY", base, failure, llm.CodeUnauthorized)
		}
	}
}

func TestInvalidBaseURL(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"localhost:8000", "ftp://x.example", "http://", "http://[::1", "/v1"} {
		failure := call(t, Config{APIKey: "k", BaseURL: base})
		if failure == nil || failure.Code != llm.CodeInvalidRequest || !strings.Contains(failure.Error(), "GEMINI_BASE_URL") {
			t.Errorf("base URL %q: error is %v, want %q naming GEMINI_BASE_URL", base, failure, llm.CodeInvalidRequest)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ google, gemini, want string }{
		{"", "", ""}, {"a", "", "a"}, {" ", " b ", "b"}, {"a", "b", "a"},
	} {
		env := map[string]string{"GOOGLE_API_KEY": test.google, "GEMINI_API_KEY": test.gemini}
		if got := FromEnv(func(name string) string { return env[name] }).APIKey; got != test.want {
			t.Errorf("%+v: key = %q, want %q", test, got, test.want)
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
		"a page":          {200, "text/html; charset=utf-8", "<html>Welcome</html>", llm.CodeMalformedResponse},
		"a whole content": {200, "application/json", `{"candidates":[]}`, llm.CodeMalformedResponse},
		"an error":        {200, "application/json", `[{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}]`, llm.CodeNotFound},
		"a bad key":       {400, "application/json", `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, llm.CodeUnauthorized},
		"context":         {400, "application/json", `{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}`, llm.CodeContextLength},
		"a list":          {400, "application/json", `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, llm.CodeInvalidRequest},
		"quota":           {429, "application/json", `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`, llm.CodeRateLimited},
		"canceled there":  {499, "application/json", `{"error":{"code":499,"message":"gone","status":"CANCELLED"}}`, llm.CodeUnavailable},
		"a bare string":   {404, "application/json", `{"error":"model not found"}`, llm.CodeNotFound},
		"nothing":         {503, "", "", llm.CodeUnavailable},
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
	for chunk, err := range model.Stream(context.Background(), &llm.Request{Model: "gemini-3-flash", Messages: []llm.Message{question}}) {
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
