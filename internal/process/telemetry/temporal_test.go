package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/internal/temporaltest"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// replayed returns the spans that a new process reports when it replays a recorded history.
func replayed(t *testing.T, history string) []sdktrace.ReadOnlySpan {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithIDGenerator(spanIDs{}))
	var all []interceptor.WorkerInterceptor
	for _, i := range interceptors(provider) {
		all = append(all, i.(interceptor.WorkerInterceptor))
	}
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: runs.DataConverter(), Interceptors: all})
	if err != nil {
		t.Fatal(err)
	}
	workflows.Register(replayer, nil)
	logger := temporallog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	if err := replayer.ReplayWorkflowHistoryFromJSONFile(logger, history); err != nil {
		t.Fatal(err)
	}
	return recorder.Ended()
}

// TestReplaysReportTheSameSpan: the span of a workflow has the same IDs in every process that
// replays it. Spans that were reported before are not reported again.
func TestReplaysReportTheSameSpan(t *testing.T) {
	t.Parallel()
	var first []sdktrace.ReadOnlySpan
	for range 2 {
		spans := replayed(t, finishedRun(t))
		if len(spans) != 1 || spans[0].Name() != "RunWorkflow:agent.run.v1" {
			t.Fatalf("spans = %d: %v, want one of the run", len(spans), spans)
		}
		first = append(first, spans[0])
	}
	a, b := first[0].SpanContext(), first[1].SpanContext()
	if !a.IsValid() || a.TraceID() != b.TraceID() || a.SpanID() != b.SpanID() {
		t.Errorf("spans of two replays = %v of %v and %v of %v, want the same", a.SpanID(), a.TraceID(), b.SpanID(), b.TraceID())
	}
}

// finishedRun returns the file of a recorded history of a run that received updates and completed.
func finishedRun(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../../workflows/testdata/replay/agent-run-*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		history, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(history, []byte("WORKFLOW_EXECUTION_UPDATE_COMPLETED")) && bytes.Contains(history, []byte("EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED")) {
			return file
		}
	}
	t.Fatal("no recorded history has updates and is completed")
	return ""
}

// TestRunOfAnotherTrace: activities of a run that began in the execution of another one belong to
// the trace of the request that started the run.
func TestRunOfAnotherTrace(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithIDGenerator(spanIDs{}))
	var options worker.Options
	for _, i := range interceptors(provider) {
		options.Interceptors = append(options.Interceptors, i.(interceptor.WorkerInterceptor))
	}
	env := temporaltest.NewEnvironment(slog.DiscardHandler)
	env.SetWorkerOptions(options)
	env.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "call"})
	const traceID, request = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		err := workflow.ExecuteActivity(ctx, "call").Get(ctx, nil)
		ctx = workflow.WithValue(ctx, runs.TraceKey{}, "00-"+traceID+"-"+request+"-01")
		return errors.Join(err, workflow.ExecuteActivity(ctx, "call").Get(ctx, nil))
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var traces, parents []string
	for _, s := range recorder.Ended() {
		if s.Name() == "StartActivity:call" {
			traces, parents = append(traces, s.SpanContext().TraceID().String()), append(parents, s.Parent().SpanID().String())
		}
	}
	if len(traces) != 2 || traces[0] == traceID || traces[1] != traceID || parents[1] != request {
		t.Errorf("traces and parents of the activities = %q and %q, want %s and %s for the second", traces, parents, traceID, request)
	}
}

// TestEvictedWorkflowIsNotReported: when a workflow is evicted from the worker's cache, the SDK
// finishes its span although the workflow has not returned. That span is not reported.
func TestEvictedWorkflowIsNotReported(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	tracer := &temporalTracer{tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")}
	for _, operation := range []string{"RunWorkflow", "RunActivity"} {
		span, err := tracer.StartSpan(&interceptor.TracerStartSpanOptions{Operation: operation, Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		span.Finish(&interceptor.TracerFinishSpanOptions{})
	}
	if spans := recorder.Ended(); len(spans) != 1 || spans[0].Name() != "RunActivity:x" {
		t.Errorf("spans = %v, want one of the activity", spans)
	}
}

// TestSpansOfTemporalCarryNoBaggage: Temporal's headers contain the trace context and no baggage.
func TestSpansOfTemporalCarryNoBaggage(t *testing.T) {
	t.Parallel()
	tracer := &temporalTracer{tracer: sdktrace.NewTracerProvider().Tracer("test")}
	parent, err := tracer.UnmarshalSpan(map[string]string{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "v=1", "baggage": "secret=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	span, err := tracer.StartSpan(&interceptor.TracerStartSpanOptions{Parent: parent, Operation: "RunActivity", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := tracer.MarshalSpan(span)
	if err != nil {
		t.Fatal(err)
	}
	own := trace.SpanContextFromContext(tracer.ContextWithSpan(context.Background(), span))
	want := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-" + own.SpanID().String() + "-01", "tracestate": "v=1"}
	if diff := cmp.Diff(want, m); diff != "" || strings.Contains(want["traceparent"], "b7ad") {
		t.Errorf("header (-want +got): %s", diff)
	}
}

// TestSpansOmitNamesOfSchedules: clients choose the names of schedules, so as span names
// their number would be unbounded.
func TestSpansOmitNamesOfSchedules(t *testing.T) {
	t.Parallel()
	tracer := &temporalTracer{}
	for o, want := range map[*interceptor.TracerStartSpanOptions]string{
		{Operation: "CreateSchedule", Name: "nightly-7"}:   "CreateSchedule",
		{Operation: "StartWorkflow", Name: "agent.run.v1"}: "StartWorkflow:agent.run.v1",
	} {
		if got := tracer.SpanName(o); got != want {
			t.Errorf("%s of %s is called %s, want %s", o.Operation, o.Name, got, want)
		}
	}
}

func TestPropagators(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"": "traceparent tracestate", "tracecontext,baggage": "traceparent tracestate", "b3, tracecontext": "traceparent tracestate", "none": "", "baggage": "",
	} {
		if got := strings.Join(propagator(func(string) string { return setting }).Fields(), " "); got != want {
			t.Errorf("OTEL_PROPAGATORS=%s propagates %q, want %q", setting, got, want)
		}
	}
}
