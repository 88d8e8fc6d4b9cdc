package api_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// TestRequestLogsNameRun: the span and the log lines of a request have the tenant, and the
// thread, the run and the agent of its path or body.
func TestRequestLogsNameRun(t *testing.T) { //nolint:paralleltest // sets the process's tracer provider
	recorder, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	var log bytes.Buffer
	node := setup(t, func(c *api.Config) { c.Logger = telemetry.NewLogger(slog.NewJSONHandler(&log, nil)) })
	node.completeRuns()
	in := `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"hello"}],"nobodyKnows":1}`
	if a := node.do(http.MethodPost, runsPath, in); a.status != http.StatusOK {
		t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
	var line map[string]any
	err := json.Unmarshal(log.Bytes(), &line)
	if err != nil {
		t.Fatalf("log line: %v", err)
	}
	for key, want := range map[string]string{"tenant": "default", "thread": "t", "run": "r", "agent": "a"} {
		if line[key] != want {
			t.Errorf("%s of the log line: got %v, want %s: %s", key, line[key], want, log.String())
		}
	}
	node.do(http.MethodGet, "/v1/threads/t/runs/r/events", "")
	node.do(http.MethodGet, "/v1/threads/"+strings.Repeat("x", 1001)+"/events", "") // too long for an ID
	node.do(http.MethodGet, "/v1/agents/a", "")
	node.http.Close() // so that all spans have ended
	got := map[string][]string{}
	for _, span := range recorder.Ended() {
		attributes := map[string]string{}
		for _, a := range span.Attributes() {
			attributes[string(a.Key)] = a.Value.String()
		}
		got[span.Name()] = append(got[span.Name()], strings.Join([]string{
			attributes["perdure.tenant"], attributes["perdure.thread.id"], attributes["gen_ai.conversation.id"], attributes["perdure.run.id"], attributes["gen_ai.agent.name"],
		}, " "))
	}
	want := map[string][]string{
		"POST /v1/agents/:agent/runs": {"default t t r a"}, "GET /v1/threads/:thread/runs/:run/events": {"default t t r "},
		"GET /v1/threads/:thread/events": {"default    "}, "GET /v1/agents/:agent": {"default    a"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got): %s", diff)
	}
}
