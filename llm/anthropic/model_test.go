package anthropic

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

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

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
		env := map[string]string{"ANTHROPIC_BASE_URL": base}
		failure := call(t, FromEnv(func(name string) string { return env[name] }))
		if failure == nil || failure.Code != llm.CodeUnauthorized || !strings.Contains(failure.Error(), "ANTHROPIC_API_KEY") {
			t.Errorf("base URL %q: error is %v, want %q naming ANTHROPIC_API_KEY", base, failure, llm.CodeUnauthorized)
		}
	}
}

func TestInvalidBaseURL(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"localhost:8000", "ftp://x.example", "http://", "http://[::1", "/v1"} {
		failure := call(t, Config{APIKey: "k", BaseURL: base})
		if failure == nil || failure.Code != llm.CodeInvalidRequest || !strings.Contains(failure.Error(), "ANTHROPIC_BASE_URL") {
			t.Errorf("base URL %q: error is %v, want %q naming ANTHROPIC_BASE_URL", base, failure, llm.CodeInvalidRequest)
		}
	}
}

// TestEnvironmentIsNotRead: the SDK would otherwise add settings from the environment.
func TestEnvironmentIsNotRead(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY": "sk-ambient", "ANTHROPIC_AUTH_TOKEN": "ambient", "ANTHROPIC_CUSTOM_HEADERS": "X-Ambient: 1", "ANTHROPIC_BASE_URL": "http://ambient.example",
	} {
		t.Setenv(name, value)
	}
	header, _ := sent(t, Config{}, &llm.Request{Model: "m", Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Ambient"} {
		if value := header.Get(name); value != "" {
			t.Errorf("%s = %q, want none", name, value)
		}
	}
}

// TestNoSpansOfTheSDK: the call has a span of this package, and the SDK must not report spans with
// prompts.
func TestNoSpansOfTheSDK(t *testing.T) { //nolint:paralleltest // sets the process's tracer provider
	recorder := tracetest.NewSpanRecorder()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	header, _ := sent(t, Config{}, &llm.Request{Model: "m", Messages: []llm.Message{userMessage(llm.Text{Text: "Hi"})}})
	if spans := recorder.Started(); len(spans) != 0 {
		t.Errorf("number of spans = %d, want none: %v", len(spans), spans[0])
	}
	if got := header.Get("Traceparent"); got != "" {
		t.Errorf("Traceparent = %q, want none", got)
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
		"a whole message":    {200, "application/json", `{"type":"message","content":[{"type":"text","text":"Hi"}]}`, llm.CodeMalformedResponse},
		"an error":           {200, "application/json", `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, llm.CodeNotFound},
		"credit":             {400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, llm.CodeQuotaExceeded},
		"billing":            {402, "application/json", `{"type":"error","error":{"type":"billing_error","message":"pay"}}`, llm.CodeQuotaExceeded},
		"context":            {400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 201 tokens > 200 maximum"}}`, llm.CodeContextLength},
		"context and output": {400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"input length and max_tokens exceed context limit: 190 + 20 > 200"}}`, llm.CodeContextLength},
		"filter":             {400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}`, llm.CodeContentFilter},
		"too large":          {413, "application/json", `{"type":"error","error":{"type":"request_too_large","message":"large"}}`, llm.CodeRequestTooLarge},
		"overloaded":         {529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.CodeUnavailable},
		"a bare string":      {404, "application/json", `{"error":"model not found"}`, llm.CodeNotFound},
		"another form":       {422, "application/json", `{"error":[1]}`, llm.CodeInvalidRequest},
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
	for chunk, err := range model.Stream(context.Background(), &llm.Request{Model: "claude-sonnet-5-5", Messages: []llm.Message{question}}) {
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
