package models_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/perdure/perdure/internal/workers/models"
	"github.com/perdure/perdure/llm"
)

// TestTraceContext: each provider gets the trace context and no baggage.
func TestTraceContext(t *testing.T) { //nolint:paralleltest // sets the process's propagator
	before := otel.GetTextMapPropagator()
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	otel.SetTextMapPropagator(both)
	t.Cleanup(func() { otel.SetTextMapPropagator(before) })
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx := both.Extract(t.Context(), propagation.MapCarrier{"traceparent": parent, "baggage": "user=eve"})
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	environment := map[string]string{
		"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.URL, "GEMINI_API_KEY": "k", "GEMINI_BASE_URL": server.URL,
		"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.URL,
	}
	providers := models.FromEnv(models.Options{Getenv: func(name string) string { return environment[name] }, Silence: time.Minute})
	for _, name := range []string{"anthropic", "gemini", "openai", "openai-responses"} {
		got = nil
		question := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "Hi"}}}
		for _, err := range providers[name].Stream(ctx, &llm.Request{Model: "m", Messages: []llm.Message{question}}) {
			if err != nil {
				break
			}
		}
		if got.Get("Traceparent") != parent || got.Get("Baggage") != "" {
			t.Errorf("headers of %s = %v, want the trace without baggage", name, got)
		}
	}
}
