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

	// patience is how long a test waits for what must happen at once.
	patience = 10 * time.Second
	// atOnce is what an end of ctx may take until it is felt.
	atOnce = time.Second
)

// server is one HTTP server with the provider pointed at it.
type server struct {
	model    llm.Model
	host     string // and port
	requests atomic.Int64
}

// serve starts a server that answers each request with handle.
func serve(t *testing.T, p Provider, handle http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	httpServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		// Unread bodies would keep the server from noticing a closed connection.
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

// play starts a server that answers each request with the events and a
// regular end of the body.
func play(t *testing.T, p Provider, write func(Encoder) []string) *server {
	t.Helper()
	return serve(t, p, func(w http.ResponseWriter, _ *http.Request) {
		events(w, write(p.NewEncoder())...)
	})
}

// events sends each event as its own piece of the body.
func events(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		if _, err := io.WriteString(w, event); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// ask streams one completion and fails the test if a rule is broken.
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

// literal is s as a JSON string literal.
func literal(s string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // strings cannot fail
	return strings.TrimSpace(b.String())
}

func number(n int64) *int64 { return &n }
