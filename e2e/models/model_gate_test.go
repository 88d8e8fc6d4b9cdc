package models

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// gate is a server before the model server, which may answer requests itself. It is safe for concurrent
// use.
type gate struct {
	url string

	mu       sync.Mutex
	answers  map[string]gateAnswer // by a text of the requests
	requests []gateRequest
}

// gateAnswer answers the n-th request of a provider, from 1; false = the model server answers it.
type gateAnswer func(w http.ResponseWriter, r *http.Request, provider string, n int) bool

// gateRequest is a request that the gate has received.
type gateRequest struct {
	text, provider string // provider is anthropic or openai
	body           string
}

// startGate starts a gate.
func startGate(t *testing.T) *gate {
	t.Helper()
	target, err := url.Parse(kit.SharedModel.URL)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{answers: map[string]gateAnswer{}}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(req *httputil.ProxyRequest) { req.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		provider := "openai"
		if strings.HasSuffix(r.URL.Path, "/messages") {
			provider = "anthropic"
		}
		answer, n := g.record(provider, string(body))
		if answer != nil && answer(w, r, provider, n) {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// on sets who answers the requests that have a text.
func (g *gate) on(text string, answer gateAnswer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[text] = answer
}

// record adds a request, and returns who answers it, and its number among those of its provider.
func (g *gate) record(provider, body string) (answer gateAnswer, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for text, a := range g.answers {
		if !strings.Contains(body, text) {
			continue
		}
		g.requests, answer = append(g.requests, gateRequest{text, provider, body}), a
		for _, other := range g.requests {
			if other.text == text && other.provider == provider {
				n++
			}
		}
	}
	return answer, n
}

// with returns the requests that have a text, in their order.
func (g *gate) with(text string) (found []gateRequest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.requests {
		if r.text == text {
			found = append(found, r)
		}
	}
	return found
}

// providers returns the providers of the requests that have a text, in their order.
func (g *gate) providers(text string) string {
	var names []string
	for _, r := range g.with(text) {
		names = append(names, r.provider)
	}
	return strings.Join(names, " ")
}

// environ returns the environment variables that make a process call the gate.
func (g *gate) environ() []string {
	return []string{"OPENAI_BASE_URL=" + g.url + "/v1", "ANTHROPIC_BASE_URL=" + g.url}
}

// refuse answers with an HTTP error; retryAfter may be empty.
func refuse(w http.ResponseWriter, status int, retryAfter string) bool {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error","message":"`+kit.Mark+`"}}`)
	return true
}
