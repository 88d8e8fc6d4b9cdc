package egress_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/perdure/perdure/internal/transport/egress"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// inTrace returns a context with a trace and with baggage.
func inTrace(ctx context.Context) context.Context {
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	otel.SetTextMapPropagator(both) // as in a program that embeds a worker and propagates baggage
	return both.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": "vendor=1", "baggage": "user=eve"})
}

// TestTraceContext: the first host gets the trace context, also after redirects to itself. Other
// hosts do not get it, and no host gets baggage.
func TestTraceContext(t *testing.T) { //nolint:paralleltest // sets the process's propagator
	var got []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		case "/again":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: egress.Traced(egress.Transport(egress.AnyNetwork))}
	t.Cleanup(client.CloseIdleConnections)
	send := func(ctx context.Context, path string, header http.Header) []http.Header {
		got = nil
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range header {
			req.Header[name] = values
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return got
	}
	const own = "00-11111111111111111111111111111111-2222222222222222-00"
	for name, tt := range map[string]struct {
		ctx    context.Context
		path   string
		header http.Header
		want   [][2]string // traceparent and tracestate of each request
	}{
		"in a trace":                   {inTrace(t.Context()), "/", nil, [][2]string{{parent, "vendor=1"}, {parent, "vendor=1"}, {}}},
		"in none":                      {t.Context(), "/end", nil, [][2]string{{}}},
		"request with its own headers": {inTrace(t.Context()), "/end", http.Header{"Traceparent": {own}}, [][2]string{{own, ""}}},
		"with a tracestate of old":     {inTrace(t.Context()), "/end", http.Header{"Tracestate": {"old=1"}}, [][2]string{{parent, "vendor=1"}}},
	} {
		sent := send(tt.ctx, tt.path, tt.header)
		if len(sent) != len(tt.want) {
			t.Errorf("%s: number of requests = %d, want %d", name, len(sent), len(tt.want))
			continue
		}
		for i, h := range sent {
			if trace := [2]string{h.Get("Traceparent"), h.Get("Tracestate")}; trace != tt.want[i] || h.Get("Baggage") != "" {
				t.Errorf("%s: request %d has %v and the baggage %q, want %v", name, i, trace, h.Get("Baggage"), tt.want[i])
			}
		}
	}
}
