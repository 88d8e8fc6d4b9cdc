package telemetry_test

import (
	"net/http"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/perdure/perdure/internal/process/telemetry"
)

// TestFramesAreSpansOfClientTrace: each WebSocket frame is a span in the trace that the client
// started with its handshake.
func TestFramesAreSpansOfClientTrace(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	handshake := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	ctx, closed := telemetry.Socket(t.Context(), handshake)
	for _, failure := range []struct {
		status int
		code   string
	}{{0, ""}, {http.StatusConflict, "busy"}, {http.StatusServiceUnavailable, "unavailable"}} {
		_, end := telemetry.Frame(ctx, "GET /v1/ws", "run")
		end(failure.status, failure.code)
	}
	closed(1000)
	spans := recorder.Ended()
	if len(spans) != 3 {
		t.Fatalf("number of spans = %d, want 3", len(spans))
	}
	for i, want := range []codes.Code{codes.Unset, codes.Unset, codes.Error} {
		s := spans[i]
		if s.Name() != "GET /v1/ws run" || s.Status().Code != want || s.Parent().SpanID().String() != "b7ad6b7169203331" {
			t.Errorf("span %d = %q, %v, child of %s, want a run of the socket with the status %v", i, s.Name(), s.Status(), s.Parent().SpanID(), want)
		}
	}
}
