package telemetry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// traceHeader is the Temporal header in which all of Temporal's SDKs propagate the trace context.
const traceHeader = "_tracer-data"

// temporalTracer makes the spans of Temporal's SDK. It differs from the SDK's own tracer:
//
//   - The span of a workflow has the same ID in every process that replays the workflow, so its
//     children keep their parent after a crash.
//   - The span of a workflow is exported once, when the workflow ends.
//   - Baggage is not propagated.
type temporalTracer struct {
	interceptor.BaseTracer
	tracer trace.Tracer
}

// temporalSpan is a span that this process has started. Only one goroutine uses it.
type temporalSpan struct {
	trace.Span
	// unreported spans are not ended, so they are never exported. Either the workflow has left the
	// worker's cache without ending, or a replay repeats a span that was exported before.
	unreported bool
}

// temporalSpanKey is the context key of a temporalSpan.
type temporalSpanKey struct{}

// Options implements [interceptor.Tracer].
func (t *temporalTracer) Options() interceptor.TracerOptions {
	return interceptor.TracerOptions{SpanContextKey: temporalSpanKey{}, HeaderKey: traceHeader, AllowInvalidParentSpans: true}
}

// UnmarshalSpan implements [interceptor.Tracer]; nil = the header has no valid trace context.
func (t *temporalTracer) UnmarshalSpan(m map[string]string) (interceptor.TracerSpanRef, error) {
	parent := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(m)))
	if !parent.IsValid() {
		return nil, nil
	}
	return parent, nil
}

// MarshalSpan implements [interceptor.Tracer].
func (t *temporalTracer) MarshalSpan(span interceptor.TracerSpan) (map[string]string, error) {
	s, ok := span.(*temporalSpan)
	if !ok {
		return nil, fmt.Errorf("telemetry: span of type %T", span)
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.Span), carrier)
	return carrier, nil
}

// SpanFromContext implements [interceptor.Tracer]: it makes the span of an HTTP request the parent
// of Temporal's.
func (t *temporalTracer) SpanFromContext(ctx context.Context) interceptor.TracerSpan {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsValid() {
		return nil
	}
	return &temporalSpan{Span: span}
}

// ContextWithSpan implements [interceptor.Tracer].
func (t *temporalTracer) ContextWithSpan(ctx context.Context, span interceptor.TracerSpan) context.Context {
	s, ok := span.(*temporalSpan)
	if !ok {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.Span)
}

// StartSpan implements [interceptor.Tracer]. It passes the durable key of a workflow's span to
// spanIDs in the context. The span of a workflow is unreported until workflowEnd has seen the
// workflow's end.
func (t *temporalTracer) StartSpan(o *interceptor.TracerStartSpanOptions) (interceptor.TracerSpan, error) {
	ctx := context.Background()
	switch parent := o.Parent.(type) {
	case *temporalSpan:
		ctx = trace.ContextWithSpan(ctx, parent.Span)
	case trace.SpanContext:
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	if key := durableKey(o); key != "" {
		ctx = context.WithValue(ctx, durableKeyKey{}, key)
	}
	kind := trace.SpanKindServer
	if o.ToHeader {
		kind = trace.SpanKindClient
	}
	attrs := make([]attribute.KeyValue, 0, len(o.Tags))
	for key, value := range o.Tags {
		attrs = append(attrs, attribute.String(key, value))
	}
	_, span := t.tracer.Start(ctx, t.SpanName(o), trace.WithTimestamp(o.Time), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return &temporalSpan{Span: span, unreported: o.Operation == operationRunWorkflow}, nil
}

// SpanName implements [interceptor.Tracer]. It leaves out the IDs of schedules: callers choose
// them, and span names must have few values.
func (t *temporalTracer) SpanName(o *interceptor.TracerStartSpanOptions) string {
	if o.Operation == operationCreateSchedule {
		return o.Operation
	}
	return t.BaseTracer.SpanName(o)
}

// operationCreateSchedule is the SDK's operation whose span name would have the ID of a schedule.
const operationCreateSchedule = "CreateSchedule"

// Operations of workflow code. A replay starts their spans again.
const (
	operationRunWorkflow  = "RunWorkflow"
	operationHandleUpdate = "HandleUpdate"
)

// durableKey returns a key that is the same for the same span in each replay; "" = a replay does
// not start this span again. The SDK's own IdempotencyKey is no substitute: it counts spans, and a
// replay starts fewer of them.
func durableKey(o *interceptor.TracerStartSpanOptions) string {
	if o.Operation != operationRunWorkflow && o.Operation != operationHandleUpdate {
		return ""
	}
	return fmt.Sprint(o.Operation, o.Tags) // fmt sorts the keys of maps
}

// GetLogger implements [interceptor.Tracer]: it adds the IDs of trace and span to a logger.
func (t *temporalTracer) GetLogger(logger log.Logger, ref interceptor.TracerSpanRef) log.Logger {
	s, ok := ref.(*temporalSpan)
	if !ok {
		return logger
	}
	return log.With(logger, keyTraceID, s.SpanContext().TraceID().String(), keySpanID, s.SpanContext().SpanID().String())
}

// Finish implements [interceptor.TracerSpan]. Continue-as-new is no error.
func (s *temporalSpan) Finish(o *interceptor.TracerFinishSpanOptions) {
	if s.unreported {
		return
	}
	var next *workflow.ContinueAsNewError
	if o.Error != nil && !errors.As(o.Error, &next) {
		s.RecordError(o.Error)
		s.SetStatus(codes.Error, o.Error.Error())
	}
	s.End()
}

// durableKeyKey is the context key of a durable key.
type durableKeyKey struct{}

// spanIDs generates IDs. Those of spans with a durable key derive from the key; all others are
// random. It is safe for concurrent use.
type spanIDs struct{}

var _ sdktrace.IDGenerator = spanIDs{}

// NewIDs implements [sdktrace.IDGenerator].
func (spanIDs) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	if key, ok := ctx.Value(durableKeyKey{}).(string); ok {
		sum := sha256.Sum256([]byte("trace " + key))
		copy(id[:], sum[:])
	}
	for !id.IsValid() {
		for i := range id {
			id[i] = byte(rand.Uint32()) //nolint:gosec // an ID, not a secret
		}
	}
	return id, spanIDs{}.NewSpanID(ctx, id)
}

// NewSpanID implements [sdktrace.IDGenerator].
func (spanIDs) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if key, ok := ctx.Value(durableKeyKey{}).(string); ok {
		sum := sha256.Sum256([]byte("span " + key))
		copy(id[:], sum[:])
	}
	for !id.IsValid() {
		for i := range id {
			id[i] = byte(rand.Uint32()) //nolint:gosec // an ID, not a secret
		}
	}
	return id
}

// TraceParent returns the trace context of ctx as the value of a traceparent header; "" = ctx has
// none.
func TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// tracedInput is a workflow input that has the trace context of the request that asked for the run.
type tracedInput interface{ TraceParent() string }

// runTraces is the interceptor outside of Temporal's tracing. An execution that continues another
// one as new may have another run; runTraces makes it part of the trace of its own run.
type runTraces struct {
	interceptor.InterceptorBase
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (*runTraces) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	r := &runTrace{}
	r.Next = next
	return r
}

// runTrace replaces the trace header of a continued execution.
type runTrace struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow implements [interceptor.WorkflowInboundInterceptor]. It only reads the input and
// the header, so it is deterministic.
func (r *runTrace) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	header := interceptor.WorkflowHeader(ctx)
	if len(in.Args) > 0 && header != nil && workflow.GetInfo(ctx).ContinuedExecutionRunID != "" {
		if input, ok := in.Args[0].(tracedInput); ok && input.TraceParent() != "" {
			payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{"traceparent": input.TraceParent()})
			if err == nil { // on an error, the earlier run's trace stays
				header[traceHeader] = payload
			}
		}
	}
	return r.Next.ExecuteWorkflow(ctx, in)
}

// interceptors returns the interceptors of a Temporal client and its workers, outermost first.
func interceptors(traces trace.TracerProvider) []interceptor.ClientInterceptor {
	tracing := interceptor.NewTracingInterceptor(&temporalTracer{tracer: traces.Tracer("temporal-sdk-go")})
	return []interceptor.ClientInterceptor{&runTraces{}, tracing, &spanEnds{}}
}

// spanEnds is the interceptor inside of Temporal's tracing. It decides which spans of workflows are
// exported.
type spanEnds struct {
	interceptor.InterceptorBase
}

// InterceptWorkflow implements [interceptor.WorkerInterceptor].
func (*spanEnds) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	w := &workflowEnd{}
	w.Next = next
	return w
}

// InterceptActivity implements [interceptor.WorkerInterceptor].
func (*spanEnds) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &activityAttempt{}
	a.Next = next
	return a
}

// workflowEnd marks the spans of workflows as to be exported.
type workflowEnd struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init implements [interceptor.WorkflowInboundInterceptor].
func (w *workflowEnd) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	calls := &runCalls{}
	calls.Next = outbound
	return w.Next.Init(calls)
}

// runCalls makes activities and child workflows part of the trace of their run, if the run began in
// the execution of another one (see [runs.TraceKey]).
type runCalls struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteActivity implements [interceptor.WorkflowOutboundInterceptor].
func (c *runCalls) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	return c.Next.ExecuteActivity(withRunSpan(ctx), activityType, args...)
}

// ExecuteLocalActivity implements [interceptor.WorkflowOutboundInterceptor].
func (c *runCalls) ExecuteLocalActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	return c.Next.ExecuteLocalActivity(withRunSpan(ctx), activityType, args...)
}

// ExecuteChildWorkflow implements [interceptor.WorkflowOutboundInterceptor].
func (c *runCalls) ExecuteChildWorkflow(ctx workflow.Context, childType string, args ...any) workflow.ChildWorkflowFuture {
	return c.Next.ExecuteChildWorkflow(withRunSpan(ctx), childType, args...)
}

// withRunSpan returns ctx with the span of the request that started its run as the parent of new
// spans, if ctx has its trace context. Otherwise the parent is the span of the workflow.
func withRunSpan(ctx workflow.Context) workflow.Context {
	parent, ok := ctx.Value(runs.TraceKey{}).(string)
	if !ok {
		return ctx
	}
	request := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent})
	return workflow.WithValue(ctx, temporalSpanKey{}, &temporalSpan{Span: trace.SpanFromContext(request)})
}

// ExecuteWorkflow marks the span for export when the workflow returns. A workflow that the cache
// evicts does not return here: its coroutine is ended.
func (w *workflowEnd) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	out, err := w.Next.ExecuteWorkflow(ctx, in)
	if span, ok := ctx.Value(temporalSpanKey{}).(*temporalSpan); ok {
		span.unreported = false
	}
	return out, err
}

// ExecuteUpdate drops the span of an update that a replay repeats.
func (w *workflowEnd) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	if span, ok := ctx.Value(temporalSpanKey{}).(*temporalSpan); ok && workflow.IsReplaying(ctx) {
		span.unreported = true
	}
	return w.Next.ExecuteUpdate(ctx, in)
}

// activityAttempt adds the number of the attempt to spans of activities.
type activityAttempt struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity implements [interceptor.ActivityInboundInterceptor].
func (a *activityAttempt) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	trace.SpanFromContext(ctx).SetAttributes(attrAttempt.Int(int(activity.GetInfo(ctx).Attempt)))
	return a.Next.ExecuteActivity(ctx, in)
}
