package cli

import (
	"net/http"
	"strings"
	"testing"
)

// TestCommandsShowTriggerEvent: the list of runs, the thread, the trace and the events of a run say which event has
// started it. A list without such a run has no column for it.
func TestCommandsShowTriggerEvent(t *testing.T) {
	t.Parallel()
	const (
		event   = `{"id":"o\u0007-7","source":"/shop","type":"order.created"}`
		shown   = "order.created with the ID o\uFFFD-7, from /shop"
		started = `{"type":"RUN_STARTED","threadId":"t1","runId":"r1","protocolVersion":"1.0","metadata":{"perdure.event":` + event + `}}`
		times   = `"agent":"a","startedAt":"2026-01-01T00:00:00Z"`
	)
	environ := serve(t, map[string]func(http.ResponseWriter, *http.Request){
		"GET /v1/threads/t1/runs":          respondWith(`{"items":[{"runId":"r2",` + times + `},{"runId":"r1",` + times + `,"event":` + event + `}]}`),
		"GET /v1/threads/t1":               respondWith(`{"threadId":"t1","status":"idle","runId":"r1","runs":2,"event":` + event + `}`),
		"GET /v1/threads/t2/runs":          respondWith(`{"items":[{"runId":"r3",` + times + `}]}`),
		"GET /v1/threads/t1/runs/r1/trace": respondWith(`{"runId":"r1",` + times + `,"event":` + event + `,"spans":[]}`),
		"POST /v1/agents/demo/runs":        streamEvents(started, ended),
	})
	runs := run(t, environ, "", "threads", "runs", "t1")
	lines := strings.Split(runs.out, "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[0], "   EVENT") || !strings.HasSuffix(lines[1], "   -") || !strings.HasSuffix(lines[2], "   "+shown) {
		t.Errorf("runs = %q, want a column with the event of the second one", runs.out)
	}
	if got := run(t, environ, "", "threads", "runs", "t2"); strings.Contains(got.out, "EVENT") || !strings.Contains(got.out, "r3") {
		t.Errorf("runs of clients = %q, want no column for events", got.out)
	}
	run(t, environ, "", "trace", "t1", "r1").want(t, 0, "started by the event "+shown+"\n", "")
	if got := run(t, environ, "", "threads", "show", "t1"); !strings.Contains(got.out, "event      "+shown+"\n") {
		t.Errorf("thread = %q, want the event of its last run", got.out)
	}
	if got := run(t, environ, "", "run", "demo", "hi"); !strings.Contains(got.errOut, "started by the event "+shown+"\n") {
		t.Errorf("notes of the run = %q, want the event", got.errOut)
	}
}
