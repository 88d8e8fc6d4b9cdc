package pipelines

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// traced are agents whose model calls a subagent that calls a tool.
const traced = `
kind: tool
name: keep
description: Notes the text of its argument. A repeated call has no further effect.
parameters: {type: object, required: [order, what], properties: {order: {type: string}, what: {type: string}}}
http: {method: POST, url: "http://JOURNAL/tools/keep", timeout: 5m}
idempotent: true
---
name: tracer
model: openai/journal
instructions: You hand work over.
tools: [keep, "agent:helper"]
---
name: helper
description: Works.
model: openai/journal
tools: [keep]
steps: [{name: works, tool: keep, args: {order: "${input.text}", what: halt}}]
`

// traceparent is a trace that a client has started.
type traceparent struct{ trace, span string }

// newTraceparent returns a random trace context.
func newTraceparent() traceparent {
	var id [24]byte
	_, _ = rand.Read(id[:])
	return traceparent{hex.EncodeToString(id[:16]), hex.EncodeToString(id[16:])}
}

// startRun starts a run in the trace and disconnects when it is accepted.
func (p traceparent) startRun(t *testing.T, url string, in kit.Input) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-"+p.trace+"-"+p.span+"-01")
	req.Header.Set("Baggage", "user=eve")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("approve: got %d %s, want %d", resp.StatusCode, text, http.StatusOK)
	}
}

// spansOf returns the spans of the trace.
func (p traceparent) spansOf(spans []*tracepb.Span) []*tracepb.Span {
	var own []*tracepb.Span
	for _, s := range spans {
		if hex.EncodeToString(s.GetTraceId()) == p.trace {
			own = append(own, s)
		}
	}
	return own
}

// intAttribute returns a number among the attributes of a span.
func intAttribute(s *tracepb.Span, key string) int64 {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetIntValue()
		}
	}
	return 0
}

// TestTraceOfRun: a run belongs to the trace of its request, with its model calls, subagents and
// tool calls, also after a kill and in a queued run. Each span has a parent in the trace and names
// its run.
func TestTraceOfRun(t *testing.T) {
	t.Parallel()
	c := &kit.Traces{Arrived: make(chan struct{})}
	collector := httptest.NewServer(c)
	t.Cleanup(collector.Close)
	w, g := startJournalServer(t), newGates()
	w.before = g.before
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), []byte(strings.ReplaceAll(traced, "http://JOURNAL", w.server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(w.environ(p.Agents), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	p.InspectAtEnd(t)
	p.Start(t)

	const agent = "/v1/agents/tracer/runs"
	order, other := kit.Mark+rand.Text()[:12], kit.Mark+rand.Text()[:12]
	handing := kit.NewInput(fmt.Sprintf(`script:{"order":%q,"hands":"helper","say":"done"}`, order))
	busy := kit.NewInput(fmt.Sprintf(`script:{"order":%q,"call":"halt","say":"done"}`, other))
	queued := busy.NextRun("run-2", "enqueue", kit.UserMessage(fmt.Sprintf(`script:{"order":%q,"say":"done"}`, other)))
	one, zero, two := newTraceparent(), newTraceparent(), newTraceparent()
	one.startRun(t, p.URL(agent), handing)
	zero.startRun(t, p.URL(agent), busy)
	opened := []*gate{g.gate(order + " later"), g.gate(other)}
	for _, at := range opened {
		select {
		case <-at.reached:
		case <-t.Context().Done():
		}
	}
	two.startRun(t, p.URL(agent), queued)
	// Active spans are not exported yet. Their ended parents must be, or the kill loses them.
	c.AwaitSpans(t, "POST /v1/agents/:agent/runs", 3)
	c.AwaitSpans(t, "StartActivity:tool.call.v1", 2)
	p.Kill()
	p.Start(t)
	for _, at := range opened {
		close(at.opened)
	}
	for _, in := range []kit.Input{handing, busy, queued} {
		p.FollowAgent(t, agent, in).Finish(t)
	}
	if err := p.Stop(); err != nil { // the process exports the rest when it stops
		t.Fatal(err)
	}
	// The queued run has a workflow span of its own only if the execution before it was old enough to
	// continue as new.
	spans := c.AwaitSpans(t, "RunWorkflow:agent.run.v1", 2)

	for run, want := range map[traceparent][]string{
		zero: {"RunWorkflow:agent.run.v1", "RunActivity:tool.call.v1", "execute_tool keep"},
		one: {
			"POST /v1/agents/:agent/runs", "StartWorkflow:agent.run.v1", "RunWorkflow:agent.run.v1", "StartActivity:model.call.v1",
			"RunActivity:model.call.v1", "chat journal", "RunWorkflow:agent.child.v1", "RunActivity:tool.call.v1", "execute_tool keep",
		},
		two: {"POST /v1/agents/:agent/runs", "RunActivity:model.call.v1", "chat journal", "RunActivity:run.finish.v1"},
	} {
		own := run.spansOf(spans)
		for _, name := range want {
			if len(kit.SpansNamed(own, name)) == 0 {
				t.Errorf("span %q in the trace of %v: got none, want some", name, want)
			}
		}
		if n := len(kit.SpansNamed(own, "RunWorkflow:agent.run.v1")); n != 1 && (run != two || n != 0) {
			t.Errorf("number of workflow spans of a run = %d, want 1", n)
		}
		known := map[string]bool{run.span: true}
		for _, s := range own {
			known[hex.EncodeToString(s.GetSpanId())] = true
		}
		for _, s := range own {
			if parent := hex.EncodeToString(s.GetParentSpanId()); !known[parent] {
				t.Errorf("parent of the span %s = %s, want an exported span", s.GetName(), parent)
			}
		}
	}
	for prefix, name := range map[string]string{
		"chat journal": "tracer", "RunActivity:model.call.v1": "tracer", "execute_tool keep": "helper", "RunActivity:tool.call.v1": "helper",
	} {
		for _, s := range kit.SpansNamed(one.spansOf(spans), prefix) {
			for key, want := range map[string]string{
				"perdure.tenant": "default", "perdure.thread.id": handing.ThreadID, "perdure.run.id": "run-1", "gen_ai.conversation.id": handing.ThreadID, "gen_ai.agent.name": name,
			} {
				if got := kit.SpanAttribute(s, key); got != want {
					t.Errorf("%s of %s is %q, want %q", key, s.GetName(), got, want)
				}
			}
		}
	}
	for _, s := range kit.SpansNamed(two.spansOf(spans), "chat journal") {
		if kit.SpanAttribute(s, "perdure.run.id") != "run-2" {
			t.Errorf("attributes of the second run = %v, want its ID", s.GetAttributes())
		}
	}
	again := func(s *tracepb.Span) bool { return intAttribute(s, "perdure.attempt") > 1 }
	if calls := kit.SpansNamed(one.spansOf(spans), "execute_tool keep"); !slices.ContainsFunc(calls, again) {
		t.Errorf("span of the tool in another attempt: got none in %v, want one", calls)
	}
	for _, d := range append(w.requestsOf(order), w.requestsOf(order+" later")...) {
		if !strings.HasPrefix(d.trace, "00-"+one.trace) {
			t.Errorf("traceparent of the %s server = %q, want that of the run", d.tool, d.trace)
		}
	}
	for _, s := range spans {
		if strings.Contains(s.String(), kit.Mark) {
			t.Errorf("span = %.300s, want no content", s)
		}
	}
}
