package e2e

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

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// traced are agents whose model calls a subagent, which calls a tool.
const traced = `
kind: tool
name: keep
description: Notes what it is told. Twice is once.
parameters: {type: object, required: [order, what], properties: {order: {type: string}, what: {type: string}}}
http: {method: POST, url: "http://WORKSHOP/tools/keep", timeout: 5m}
idempotent: true
---
name: tracer
model: openai/workshop
instructions: You hand work over.
tools: [keep, "agent:helper"]
---
name: helper
description: Works.
model: openai/workshop
tools: [keep]
steps: [{name: works, tool: keep, args: {order: "${input.text}", what: halt}}]
`

// traceparent is a trace that a client has begun.
type traceparent struct{ trace, span string }

func newTraceparent() traceparent {
	var id [24]byte
	_, _ = rand.Read(id[:])
	return traceparent{hex.EncodeToString(id[:16]), hex.EncodeToString(id[16:])}
}

// begin starts a run in a trace, and leaves when it is accepted.
func (p traceparent) begin(t *testing.T, url string, in input) {
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
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
}

// of returns the spans of the trace.
func (p traceparent) of(spans []*tracepb.Span) []*tracepb.Span {
	var own []*tracepb.Span
	for _, s := range spans {
		if hex.EncodeToString(s.GetTraceId()) == p.trace {
			own = append(own, s)
		}
	}
	return own
}

func intAttribute(s *tracepb.Span, key string) int64 {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetIntValue()
		}
	}
	return 0
}

// TestTraceOfARun: a run belongs to the trace of the request that asked for it, with its model
// calls, its subagents and their tools, also after the process was killed and when the run has
// waited for its thread. No span is an orphan, and each names its run.
func TestTraceOfARun(t *testing.T) {
	t.Parallel()
	c := &traces{arrived: make(chan struct{})}
	collector := httptest.NewServer(c)
	t.Cleanup(collector.Close)
	w, halts := openWorkshop(t), newHalts()
	w.before = halts.before
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.agents, "all.yaml"), []byte(strings.ReplaceAll(traced, "http://WORKSHOP", w.server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	p.env = append(w.environ(p.agents), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	p.keep(t)
	p.start(t)

	const agent = "/v1/agents/tracer/runs"
	order, other := mark+rand.Text()[:12], mark+rand.Text()[:12]
	handing := newInput(fmt.Sprintf(`script:{"order":%q,"hands":"helper","say":"done"}`, order))
	busy := newInput(fmt.Sprintf(`script:{"order":%q,"call":"halt","say":"done"}`, other))
	queued := busy.after("run-2", "enqueue", user(fmt.Sprintf(`script:{"order":%q,"say":"done"}`, other)))
	one, zero, two := newTraceparent(), newTraceparent(), newTraceparent()
	one.begin(t, p.url(agent), handing)
	zero.begin(t, p.url(agent), busy)
	opened := []*halt{halts.of(order + " later"), halts.of(other)}
	for _, at := range opened {
		select {
		case <-at.came:
		case <-t.Context().Done():
		}
	}
	two.begin(t, p.url(agent), queued)
	// What has begun is not reported yet; what led there must be, or it is lost with the process.
	c.await(t, "POST /v1/agents/:agent/runs", 3)
	c.await(t, "StartActivity:tool.call.v1", 2)
	p.kill()
	p.start(t)
	for _, at := range opened {
		close(at.opened)
	}
	for _, in := range []input{handing, busy, queued} {
		p.followAgent(t, agent, in).finish(t)
	}
	if err := p.stop(); err != nil { // what is left is sent when the process ends
		t.Fatal(err)
	}
	spans := c.await(t, "RunWorkflow:agent.run.v1", 3)

	for run, want := range map[traceparent][]string{
		zero: {"RunWorkflow:agent.run.v1", "RunActivity:tool.call.v1", "execute_tool keep"},
		one: {
			"POST /v1/agents/:agent/runs", "StartWorkflow:agent.run.v1", "RunWorkflow:agent.run.v1", "StartActivity:model.call.v1",
			"RunActivity:model.call.v1", "chat workshop", "RunWorkflow:agent.child.v1", "RunActivity:tool.call.v1", "execute_tool keep",
		},
		two: {"POST /v1/agents/:agent/runs", "RunWorkflow:agent.run.v1", "RunActivity:model.call.v1", "chat workshop", "RunActivity:run.finish.v1"},
	} {
		own := run.of(spans)
		for _, name := range want {
			if len(named(own, name)) == 0 {
				t.Errorf("no span %q in the trace of %v", name, want)
			}
		}
		if n := len(named(own, "RunWorkflow:agent.run.v1")); n != 1 {
			t.Errorf("the workflow of a run is reported %d times", n)
		}
		known := map[string]bool{run.span: true}
		for _, s := range own {
			known[hex.EncodeToString(s.GetSpanId())] = true
		}
		for _, s := range own {
			if parent := hex.EncodeToString(s.GetParentSpanId()); !known[parent] {
				t.Errorf("%s is an orphan: nobody reports its parent %s", s.GetName(), parent)
			}
		}
	}
	for prefix, name := range map[string]string{
		"chat workshop": "tracer", "RunActivity:model.call.v1": "tracer", "execute_tool keep": "helper", "RunActivity:tool.call.v1": "helper",
	} {
		for _, s := range named(one.of(spans), prefix) {
			for key, want := range map[string]string{
				"perdure.tenant": "default", "perdure.thread.id": handing.ThreadID, "perdure.run.id": "run-1", "gen_ai.conversation.id": handing.ThreadID, "gen_ai.agent.name": name,
			} {
				if got := attribute(s, key); got != want {
					t.Errorf("%s of %s is %q, want %q", key, s.GetName(), got, want)
				}
			}
		}
	}
	for _, s := range named(two.of(spans), "chat workshop") {
		if attribute(s, "perdure.run.id") != "run-2" {
			t.Errorf("attributes of the second run: %v", s.GetAttributes())
		}
	}
	again := func(s *tracepb.Span) bool { return intAttribute(s, "perdure.attempt") > 1 }
	for _, name := range []string{"RunActivity:tool.call.v1", "execute_tool keep"} {
		if !slices.ContainsFunc(named(one.of(spans), name), again) {
			t.Errorf("no span %q is of another attempt: %v", name, named(one.of(spans), name))
		}
	}
	for _, d := range append(w.done(order), w.done(order+" later")...) {
		if !strings.HasPrefix(d.trace, "00-"+one.trace) {
			t.Errorf("the %s server was sent the traceparent %q", d.tool, d.trace)
		}
	}
	for _, s := range spans {
		if strings.Contains(s.String(), mark) {
			t.Errorf("content in a span: %.300s", s)
		}
	}
}
