package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/llm"
)

const (
	apiKey = "sk-llmtest-0123456789abcdef"
	prompt = "the quick brown fox keeps its secrets to itself"

	// patience is how long a test waits for an event that must happen.
	patience = 10 * time.Second
	// atOnce is the maximum delay between the end of ctx and the end of a stream.
	atOnce = time.Second
)

// server is an HTTP server and a provider that sends its requests to it. The test's cleanup closes
// it.
type server struct {
	model    llm.Model
	host     string       // with port
	requests atomic.Int64 // number of requests received
}

// serve starts a server that answers each request with handle.
func serve(t *testing.T, p Provider, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	httpServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		// net/http notices a closed connection only after the handler has read the body.
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		handle(w, r)
	}))
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		httpServer.Close()
	})
	s.host = httpServer.Listener.Addr().String()
	s.model = p.New(Endpoint{BaseURL: httpServer.URL, APIKey: apiKey, Client: client})
	return s
}

// play starts a server that answers each request with the events, and then ends the body regularly.
func play(t *testing.T, p Provider, write func(Encoder) []string) *server {
	t.Helper()
	return serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
		events(w, write(p.NewEncoder())...)
	})
}

// events writes each event as a separate piece of the body.
func events(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// ask streams one completion. It fails the test if the stream violates a rule or the provider
// retries.
func (s *server) ask(t *testing.T) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	outcome := Stream(t, ctx, s.model, request())
	if n := s.requests.Load(); n != 1 {
		t.Errorf("the provider sent %d requests, want 1: it must not retry", n)
	}
	return outcome
}

// finished is ask for a completion that must succeed.
func (s *server) finished(t *testing.T) Outcome {
	t.Helper()
	outcome := s.ask(t)
	if outcome.Err != nil {
		t.Fatalf("stream failed: %v", outcome.Err)
	}
	return outcome
}

// failed is ask for a completion that must fail with one of the codes.
func (s *server) failed(t *testing.T, codes ...llm.Code) *llm.Error {
	t.Helper()
	failure := asError(t, s.ask(t).Err)
	for _, code := range codes {
		if failure.Code == code {
			return failure
		}
	}
	t.Fatalf("failed with %v, want one of %v", failure, codes)
	return nil
}

// request returns the request that the tests send.
func request() *llm.Request {
	return &llm.Request{
		Model: "test-model",
		Messages: []llm.Message{
			{Role: llm.RoleSystem, Parts: []llm.Part{llm.Text{Text: "Be brief."}}},
			{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: prompt}}},
		},
		Tools: []llm.Tool{{Name: "lookup", Description: "Looks up.", Parameters: json.RawMessage(`{"type":"object"}`)}},
	}
}

// literal returns s as a JSON string literal.
func literal(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // cannot fail
	return strings.TrimSpace(b.String())
}

// number returns a pointer to n, for a count of [llm.Usage].
func number(n int64) *int64 { return &n }
