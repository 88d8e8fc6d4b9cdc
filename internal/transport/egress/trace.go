package egress

import (
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// Headers of a W3C trace context.
const (
	headerTraceparent = "Traceparent"
	headerTracestate  = "Tracestate"
)

// Traced returns a transport that adds the trace context of a request's context as the headers
// traceparent and tracestate, and no baggage. It does not change headers that the request has. A
// request that was redirected to another host gets none.
func Traced(next http.RoundTripper) http.RoundTripper { return traced{next} }

// traced is the transport of Traced.
type traced struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t traced) RoundTrip(req *http.Request) (*http.Response, error) {
	carrier := TraceContext{}
	otel.GetTextMapPropagator().Inject(req.Context(), carrier)
	if len(carrier) == 0 || req.Header.Get(headerTraceparent) != "" || HostOf(first(req).URL) != HostOf(req.URL) {
		return t.next.RoundTrip(req)
	}
	req = req.Clone(req.Context()) // a RoundTripper must not change the request (net/http)
	req.Header.Del(headerTracestate)
	for name, value := range carrier {
		req.Header.Set(name, value)
	}
	return t.next.RoundTrip(req)
}

// CloseIdleConnections implements the interface of [http.Client.CloseIdleConnections].
func (t traced) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// first returns the first request of a chain of redirects.
func first(req *http.Request) *http.Request {
	for req.Response != nil && req.Response.Request != nil {
		req = req.Response.Request
	}
	return req
}

// TraceContext is a carrier that accepts the headers of the trace context, and ignores all others.
type TraceContext map[string]string

var _ propagation.TextMapCarrier = TraceContext{}

// Get implements [propagation.TextMapCarrier].
func (c TraceContext) Get(key string) string { return c[key] }

// Set implements [propagation.TextMapCarrier].
func (c TraceContext) Set(key, value string) {
	switch http.CanonicalHeaderKey(key) {
	case headerTraceparent, headerTracestate:
		c[key] = value
	}
}

// Keys implements [propagation.TextMapCarrier].
func (c TraceContext) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
