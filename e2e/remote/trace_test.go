package remote

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRemoteTraceContext: each request to a remote agent, also one after the worker was killed, is a part of the
// trace that the client began, with the span of its own attempt as its parent.
func TestRemoteTraceContext(t *testing.T) {
	t.Parallel()
	const clientTrace = "0af7651916cd43dd8448eb211c80319c"
	collector := &kit.Traces{Arrived: make(chan struct{})}
	endpoint := httptest.NewServer(collector)
	t.Cleanup(endpoint.Close)
	s := startFlakyServer(t)
	s.handle("/traced", func(e *exchange) {
		switch e.n {
		case 1: // fails
			e.begin()
			e.reset()
		case 2: // goes on until the worker is killed
			e.begin()
			<-e.r.Context().Done()
		default:
			e.finish()
		}
	})
	p := startWith(t, fmt.Sprintf("name: traced\nremote: {url: \"%s/traced\", retry: restart}\n", s.URL),
		"OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	in := kit.NewInput(kit.Marked("Who are you?"))
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL("/v1/agents/traced/runs"), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+clientTrace+"-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // a follower reads the run
	f := p.NewFollower(t, in)
	f.AttachPath = kit.EventsPath(in)
	f.UntilContent(t, 4)                              // two of each attempt
	collector.AwaitSpans(t, "invoke_agent traced", 1) // the span of the killed attempt is never exported
	p.Restart(t)
	f.Finish(t)
	if err := p.Stop(); err != nil { // the process exports the rest when it stops
		t.Fatal(err)
	}
	spans := map[string]bool{}
	for _, span := range kit.SpansNamed(collector.AwaitSpans(t, "invoke_agent traced", 2), "invoke_agent traced") {
		spans[hex.EncodeToString(span.GetSpanId())] = true
	}
	parents := map[string]bool{}
	for i, r := range s.received("/traced") {
		trace, parent := traceOf(t, r)
		if trace != clientTrace {
			t.Errorf("trace of request %d = %s, want that of the client", i+1, trace)
		}
		if parents[parent] || i != 1 && !spans[parent] {
			t.Errorf("parent of request %d = %s, want the span of its attempt, one of %v", i+1, parent, spans)
		}
		parents[parent] = true
	}
	if len(parents) != 3 {
		t.Errorf("requests = %d, want 3", len(parents))
	}
}

// traceOf returns the IDs in the traceparent of a request.
func traceOf(t *testing.T, r *http.Request) (trace, parent string) {
	t.Helper()
	fields := strings.Split(r.Header.Get("Traceparent"), "-")
	if len(fields) != 4 {
		t.Fatalf("traceparent = %q, want one", r.Header.Get("Traceparent"))
	}
	return fields[1], fields[2]
}
