package e2e

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// traces is an OpenTelemetry collector.
type traces struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	arrived chan struct{} // closed and replaced when spans arrive
}

func (c *traces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// await returns all spans as soon as there are n with a name that begins so.
func (c *traces) await(t *testing.T, prefix string, n int) []*tracepb.Span {
	t.Helper()
	overdue := time.After(patience)
	for {
		c.mu.Lock()
		spans, arrived := c.spans, c.arrived
		c.mu.Unlock()
		if len(named(spans, prefix)) >= n {
			return spans
		}
		select {
		case <-arrived:
		case <-overdue:
			t.Fatalf("%d spans %q, want %d", len(named(spans, prefix)), prefix, n)
		}
	}
}

func named(spans []*tracepb.Span, prefix string) []*tracepb.Span {
	var found []*tracepb.Span
	for _, s := range spans {
		if strings.HasPrefix(s.GetName(), prefix) {
			found = append(found, s)
		}
	}
	return found
}

func attribute(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// One trace leads from the request through workflow and activities to the model and the tools. A
// process that is killed in mid-run and started again replays the workflow, and reports none of it
// a second time.
func TestOneTraceAndNothingTwice(t *testing.T) {
	t.Parallel()
	c := &traces{arrived: make(chan struct{})}
	endpoint := httptest.NewServer(c)
	t.Cleanup(endpoint.Close)
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint.URL, "OTEL_BSP_SCHEDULE_DELAY=50"}
	p.keep(t)
	p.start(t)

	in := newInput(say("What is 12*7, and what time is it?"))
	f := p.followAgent(t, "/v1/agents/demo/runs", in)
	f.until(t, func(e event) bool { return e.Type == "TEXT_MESSAGE_CONTENT" })
	c.await(t, "execute_tool", 2)
	// The killed process must have exported every span that is looked for below: it reports none of
	// them again.
	for _, name := range []string{"RunWorkflow:agent.run.v1", "StartWorkflow:agent.run.v1", "RunActivity:model.call.v1", "RunActivity:tool.call.v1"} {
		c.await(t, name, 1)
	}
	p.kill()
	p.start(t)
	f.finish(t)
	c.await(t, "chat demo", 2)
	if err := p.stop(); err != nil { // what is left is sent when the process ends
		t.Fatal(err)
	}
	spans := c.await(t, "chat demo", 2)

	workflow := named(spans, "RunWorkflow:agent.run.v1")
	if len(workflow) != 1 {
		t.Errorf("the workflow is reported %d times", len(workflow))
	}
	trace := hex.EncodeToString(workflow[0].GetTraceId())
	for _, prefix := range []string{"StartWorkflow:agent.run.v1", "RunActivity:model.call.v1", "RunActivity:tool.call.v1", "chat demo", "execute_tool calculate", "execute_tool current_time"} {
		found := named(spans, prefix)
		if len(found) == 0 {
			t.Errorf("no span %q", prefix)
		}
		for _, s := range found {
			if got := hex.EncodeToString(s.GetTraceId()); got != trace {
				t.Errorf("span %q is of trace %s, the workflow of %s", s.GetName(), got, trace)
			}
		}
	}
	for _, name := range []string{"execute_tool calculate", "execute_tool current_time"} {
		if n := len(named(spans, name)); n != 1 {
			t.Errorf("%q is reported %d times", name, n)
		}
	}
	for _, s := range named(spans, "chat demo") {
		if attribute(s, "gen_ai.operation.name") != "chat" || attribute(s, "gen_ai.provider.name") != "scripted" ||
			attribute(s, "gen_ai.conversation.id") != in.ThreadID || attribute(s, "gen_ai.agent.name") != "demo" {
			t.Errorf("attributes of the model call: %v", s.GetAttributes())
		}
	}
	for _, s := range spans {
		if strings.Contains(s.String(), mark) {
			t.Errorf("content in a span: %.300s", s)
		}
	}
}
