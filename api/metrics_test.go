package api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
)

// TestSizesOfBodies: a body without a declared length has the size that was read, and a response
// without a body has none.
func TestSizesOfBodies(t *testing.T) { //nolint:paralleltest // sets the process's meter provider
	meters := otel.GetMeterProvider()
	tel, err := telemetry.Start(t.Context(), "test", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		otel.SetMeterProvider(meters)
		tel.Shutdown(context.WithoutCancel(t.Context()), slog.New(slog.DiscardHandler))
	})
	node := setup(t)
	node.temporal.start = func(in runs.Input) error { node.end(node.begin(in, "e1")); return nil }
	node.post(inputOf("r1", "hello"))
	handler := node.server.Handler()
	serve := func(method, path string, body io.Reader) string {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, body))
		return w.Body.String()
	}
	for range 10 {
		serve(http.MethodPost, "/v1/threads/t/runs/r1/cancel", io.MultiReader(strings.NewReader(`{"reason":"too dear"}`)))
	}
	shown := figures(t, tel)
	sum := func(metric string) string {
		for line := range strings.Lines(shown) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
			if strings.HasPrefix(name, metric+"_sum{") && strings.Contains(name, "/cancel") {
				return value
			}
		}
		return ""
	}
	if in, out := sum("http_server_request_body_size_bytes"), sum("http_server_response_body_size_bytes"); in != "210" || out != "0" {
		t.Errorf("bytes of ten requests of 21 bytes and their empty responses: got %s and %s, want 210 and 0", in, out)
	}
}

// figures returns the metrics in the format of Prometheus.
func figures(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// TestRequestsAddNoTimeSeries: requests of clients, whatever they contain, add no time series to
// /metrics and no names of spans.
func TestRequestsAddNoTimeSeries(t *testing.T) { //nolint:paralleltest // sets the process's meter and tracer providers
	meters, tracers := otel.GetMeterProvider(), otel.GetTracerProvider()
	tel, err := telemetry.Start(t.Context(), "test", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	t.Cleanup(func() {
		otel.SetMeterProvider(meters)
		otel.SetTracerProvider(tracers)
		tel.Shutdown(context.WithoutCancel(t.Context()), slog.New(slog.DiscardHandler))
	})
	node := setup(t, quotasOf(t, "default: {requestsPerSecond: unlimited, subjectRequestsPerSecond: unlimited, writesPerSecond: unlimited, subjectWritesPerSecond: unlimited}"))
	handler := node.server.Handler()

	serve := func(method, path string, header http.Header, host, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Host = host
		for name, values := range header {
			r.Header[name] = values
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	odd := func(i int) {
		own := func(format string) string { return fmt.Sprintf(format, i) }
		serve(http.MethodGet, "/v1/agents", nil, own("h%d.example:")+own("%d"), "")
		serve(http.MethodGet, own("/v1/nowhere/%d"), nil, "h", "")
		serve(http.MethodGet, own("/nowhere/%d"), nil, "h", "")
		serve(own("METHOD%d"), "/v1/agents", nil, "h", "")
		serve(own("METHOD%d"), own("/v1/nowhere/%d"), nil, "h", "")
		serve(http.MethodGet, own("/v1/agents/agent-%d"), nil, "h", "")
		serve(http.MethodPost, own("/v1/agents/agent-%d/runs"), nil, "h", own(`{"threadId":"t%d","runId":"r","messages":[]}`))
		serve(http.MethodGet, own("/v1/threads/t%d/runs/r/events"), nil, "h", "")
		serve(http.MethodGet, own("/v1/agents?x%d=1"), nil, "h", "")
		serve(http.MethodGet, own("/v1/agents?cursor=%d"), nil, "h", "")
		serve(http.MethodGet, "/v1/agents", http.Header{
			"User-Agent": {own("agent/%d")}, "X-Forwarded-For": {own("10.0.0.%d")}, "X-Forwarded-Host": {own("h%d")}, "X-Tenant": {own("tenant-%d")},
			"Baggage": {own("k%d=v")}, "Origin": {own("https://o%d.example")},
		}, "h", "")
	}
	series := func() []string {
		var all []string
		for line := range strings.Lines(figures(t, tel)) {
			name, _, _ := strings.Cut(line, "} ")
			if !strings.HasPrefix(line, "http_") && !strings.HasPrefix(line, "perdure_") {
				continue
			}
			all = append(all, name)
		}
		slices.Sort(all)
		return all
	}
	names := func() []string {
		var all []string
		for _, s := range recorder.Ended() {
			all = append(all, s.Name())
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	odd(10_000)
	seriesBefore, namesBefore := series(), names()
	if len(seriesBefore) == 0 {
		t.Errorf("number of time series = %v, want at least 1", len(seriesBefore))
	}
	if len(namesBefore) == 0 {
		t.Errorf("number of span names = %v, want at least 1", len(namesBefore))
	}
	for i := range 1000 {
		odd(i)
	}
	if diff := cmp.Diff(seriesBefore, series()); diff != "" {
		t.Errorf("time series (-before +after): %.3000s", diff)
	}
	if diff := cmp.Diff(namesBefore, names()); diff != "" {
		t.Errorf("names of spans (-before +after): %.2000s", diff)
	}
	for _, name := range namesBefore {
		if strings.Contains(name, "10000") {
			t.Errorf("name of a span = %q, want no %q", name, "10000")
		}
	}
}
