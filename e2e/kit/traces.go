package kit

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	logcollector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Traces is an OpenTelemetry collector of spans and log records.
type Traces struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	records []string      // the bodies of log records
	Arrived chan struct{} // closed and replaced when spans or log records arrive
}

// ServeHTTP receives spans and log records over OTLP.
func (c *Traces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.URL.Path == "/v1/logs" {
		c.takeRecords(w, body)
		return
	}
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	close(c.Arrived)
	c.Arrived = make(chan struct{})
}

// takeRecords receives log records.
func (c *Traces) takeRecords(w http.ResponseWriter, body []byte) {
	var req logcollector.ExportLogsServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ofResource := range req.GetResourceLogs() {
		for _, ofScope := range ofResource.GetScopeLogs() {
			for _, record := range ofScope.GetLogRecords() {
				c.records = append(c.records, record.GetBody().GetStringValue())
			}
		}
	}
	close(c.Arrived)
	c.Arrived = make(chan struct{})
}

// AwaitRecord waits until a log record with a body has arrived.
func (c *Traces) AwaitRecord(t *testing.T, body string) {
	t.Helper()
	overdue := time.After(WaitTimeout)
	for {
		c.mu.Lock()
		records, arrived := c.records, c.Arrived
		c.mu.Unlock()
		if slices.Contains(records, body) {
			return
		}
		select {
		case <-arrived:
		case <-overdue:
			t.Fatalf("log records = %q, want one with %q", records, body)
		}
	}
}

// AwaitSpans waits until n spans have a name with the prefix, and returns all spans.
func (c *Traces) AwaitSpans(t *testing.T, prefix string, n int) []*tracepb.Span {
	t.Helper()
	overdue := time.After(WaitTimeout)
	for {
		c.mu.Lock()
		spans, arrived := c.spans, c.Arrived
		c.mu.Unlock()
		if len(SpansNamed(spans, prefix)) >= n {
			return spans
		}
		select {
		case <-arrived:
		case <-overdue:
			t.Fatalf("%d spans %q, want %d", len(SpansNamed(spans, prefix)), prefix, n)
		}
	}
}

// SpansNamed returns the spans whose name has the prefix.
func SpansNamed(spans []*tracepb.Span, prefix string) []*tracepb.Span {
	var found []*tracepb.Span
	for _, s := range spans {
		if strings.HasPrefix(s.GetName(), prefix) {
			found = append(found, s)
		}
	}
	return found
}

// SpanAttribute returns a string attribute of a span; "" = it has none.
func SpanAttribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}
