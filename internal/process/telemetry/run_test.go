package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/perdure/perdure/internal/process/telemetry"
)

var ofRun = telemetry.Run{Tenant: "acme", Thread: "t1", ID: "r1", Agent: "support", Revision: "rev", Attempt: 2}

// record records the spans of the test.
func record(t *testing.T) *tracetest.SpanRecorder {
	t.Helper()
	recorder, before := tracetest.NewSpanRecorder(), otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	return recorder
}

// TestSpansNameTheirRun: the spans of a model call, of a tool call, and of the activity around them
// have the same attributes.
func TestSpansNameTheirRun(t *testing.T) { //nolint:paralleltest // sets the process's tracer provider
	recorder := record(t)
	ctx, activity := otel.Tracer("test").Start(t.Context(), "RunActivity:x")
	ctx = telemetry.WithRun(ctx, ofRun)
	_, chat := telemetry.StartChat(ctx, telemetry.ChatRequest{Provider: "openai", Model: "m"})
	chat.End(telemetry.ChatResponse{})
	_, end := telemetry.StartTool(ctx, "search", "call_1")
	end("")
	activity.End()
	spans := recorder.Ended()
	if len(spans) != 3 {
		t.Fatalf("number of spans = %d, want 3", len(spans))
	}
	for _, span := range spans {
		got := map[attribute.Key]string{}
		for _, a := range span.Attributes() {
			got[a.Key] = a.Value.String()
		}
		for key, want := range map[attribute.Key]string{
			"perdure.tenant": "acme", "perdure.thread.id": "t1", "perdure.run.id": "r1", "perdure.attempt": "2",
			"gen_ai.conversation.id": "t1", "gen_ai.agent.name": "support", "gen_ai.agent.version": "rev",
		} {
			if got[key] != want {
				t.Errorf("%s: %s is %q, want %q", span.Name(), key, got[key], want)
			}
		}
	}
}

// TestLogLinesNameTheirRun: a line has the attributes of its context's run, each once.
func TestLogLinesNameTheirRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	logger := telemetry.NewLogger(slog.NewJSONHandler(&out, nil))
	ctx := telemetry.WithRun(t.Context(), ofRun)
	logger.InfoContext(ctx, "a line", "run", "r2")
	logger.InfoContext(context.Background(), "of no run")
	logger.With("WorkflowID", "thread/acme/t1", "RunID", "x").With("tenant", "acme", "thread", "t1", "run", "r1").Info("of the SDK")
	logger.Info("of a long thread", "WorkflowID", "thread/acme/~mzxw6")
	logger.With("WorkflowID", "fire/acme/nightly").Info("of a schedule")
	var lines []map[string]any
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		delete(line, "time")
		lines = append(lines, line)
	}
	want := []map[string]any{
		{"level": "INFO", "msg": "a line", "tenant": "acme", "thread": "t1", "run": "r2", "agent": "support", "attempt": 2.0},
		{"level": "INFO", "msg": "of no run"},
		{"level": "INFO", "msg": "of the SDK", "WorkflowID": "thread/acme/t1", "RunID": "x", "tenant": "acme", "thread": "t1", "run": "r1"},
		{"level": "INFO", "msg": "of a long thread", "WorkflowID": "thread/acme/~mzxw6", "tenant": "acme"},
		{"level": "INFO", "msg": "of a schedule", "WorkflowID": "fire/acme/nightly"},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got): %s", diff)
	}
}
