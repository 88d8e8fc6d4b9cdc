package operations

import (
	"bytes"
	"encoding/hex"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRunHasOneTrace: one trace has the request, the workflow, its activities, the model
// and the tools. A process that is killed in the middle of a run replays the workflow and does not
// export its spans again.
func TestRunHasOneTrace(t *testing.T) {
	t.Parallel()
	c := &kit.Traces{Arrived: make(chan struct{})}
	endpoint := httptest.NewServer(c)
	t.Cleanup(endpoint.Close)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint.URL, "OTEL_BSP_SCHEDULE_DELAY=50"}
	p.InspectAtEnd(t)
	p.Start(t)

	in := kit.NewInput(kit.Marked("What is 12*7, and what time is it?"))
	f := p.FollowAgent(t, "/v1/agents/demo/runs", in)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TEXT_MESSAGE_CONTENT" })
	c.AwaitSpans(t, "execute_tool", 2)
	// The killed process must have exported every span that the test looks for, since the next
	// process does not export them again.
	for _, name := range []string{"RunWorkflow:agent.run.v1", "StartWorkflow:agent.run.v1", "RunActivity:model.call.v1", "RunActivity:tool.call.v1"} {
		c.AwaitSpans(t, name, 1)
	}
	p.Kill()
	p.Start(t)
	f.Finish(t)
	c.AwaitSpans(t, "chat demo", 2)
	if err := p.Stop(); err != nil { // the process exports the rest when it stops
		t.Fatal(err)
	}
	spans := c.AwaitSpans(t, "chat demo", 2)

	// If the kill was before the end of the workflow was recorded, both processes have exported the
	// span. It has the same ID then.
	workflow := kit.SpansNamed(spans, "RunWorkflow:agent.run.v1")
	for _, s := range workflow[1:] {
		if !bytes.Equal(s.GetSpanId(), workflow[0].GetSpanId()) {
			t.Errorf("workflow spans = %v, want one ID", workflow)
		}
	}
	trace := hex.EncodeToString(workflow[0].GetTraceId())
	for _, prefix := range []string{"StartWorkflow:agent.run.v1", "RunActivity:model.call.v1", "RunActivity:tool.call.v1", "chat demo", "execute_tool calculate", "execute_tool current_time"} {
		found := kit.SpansNamed(spans, prefix)
		if len(found) == 0 {
			t.Errorf("span %q: got none, want some", prefix)
		}
		for _, s := range found {
			if got := hex.EncodeToString(s.GetTraceId()); got != trace {
				t.Errorf("trace of the span %q = %s, want that of the workflow %s", s.GetName(), got, trace)
			}
		}
	}
	for _, name := range []string{"execute_tool calculate", "execute_tool current_time"} {
		if n := len(kit.SpansNamed(spans, name)); n != 1 {
			t.Errorf("number of spans %q = %d, want 1", name, n)
		}
	}
	for _, s := range kit.SpansNamed(spans, "chat demo") {
		if kit.SpanAttribute(s, "gen_ai.operation.name") != "chat" || kit.SpanAttribute(s, "gen_ai.provider.name") != "scripted" ||
			kit.SpanAttribute(s, "gen_ai.conversation.id") != in.ThreadID || kit.SpanAttribute(s, "gen_ai.agent.name") != "demo" {
			t.Errorf("attributes of the model call = %v, want those of a chat", s.GetAttributes())
		}
	}
	for _, s := range spans {
		if strings.Contains(s.String(), kit.Mark) {
			t.Errorf("span = %.300s, want no content", s)
		}
	}
}
