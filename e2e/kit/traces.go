package kit

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Traces is an OpenTelemetry collector.
type Traces struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	Arrived chan struct{} // closed and replaced when spans arrive
}

func (c *Traces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
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

// Await returns all spans as soon as there are n with a name that begins so.
func (c *Traces) Await(t *testing.T, prefix string, n int) []*tracepb.Span {
	t.Helper()
	overdue := time.After(Patience)
	for {
		c.mu.Lock()
		spans, arrived := c.spans, c.Arrived
		c.mu.Unlock()
		if len(Named(spans, prefix)) >= n {
			return spans
		}
		select {
		case <-arrived:
		case <-overdue:
			t.Fatalf("%d spans %q, want %d", len(Named(spans, prefix)), prefix, n)
		}
	}
}

func Named(spans []*tracepb.Span, prefix string) []*tracepb.Span {
	var found []*tracepb.Span
	for _, s := range spans {
		if strings.HasPrefix(s.GetName(), prefix) {
			found = append(found, s)
		}
	}
	return found
}

func Attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}
