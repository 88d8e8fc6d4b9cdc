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
)

// traceHeader is the header of Temporal in which all its SDKs carry the trace context.
const traceHeader = "_tracer-data"

// temporalTracer makes spans of what Temporal's SDK does. It differs from the SDK's own tracer in
// this: the span of a workflow has the same ID in every process that replays it, so that its
// children are not orphans after a crash; it is reported once, when the workflow ends; and no
// baggage goes along.
type temporalTracer struct {
	interceptor.BaseTracer
	tracer trace.Tracer
}

// temporalSpan is a span that has begun here. Only one goroutine uses it.
type temporalSpan struct {
	trace.Span
	// unreported spans are dropped: the workflow has not ended but left the worker's memory, or a
	// replay repeats what was reported before.
	unreported bool
}

// temporalSpanKey is the key of a temporalSpan in a context.
type temporalSpanKey struct{}

func (t *temporalTracer) Options() interceptor.TracerOptions {
	return interceptor.TracerOptions{SpanContextKey: temporalSpanKey{}, HeaderKey: traceHeader, AllowInvalidParentSpans: true}
}

func (t *temporalTracer) UnmarshalSpan(m map[string]string) (interceptor.TracerSpanRef, error) {
	parent := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier(m)))
	if !parent.IsValid() {
		return nil, nil
	}
	return parent, nil
}

func (t *temporalTracer) MarshalSpan(span interceptor.TracerSpan) (map[string]string, error) {
	s, ok := span.(*temporalSpan)
	if !ok {
		return nil, fmt.Errorf("telemetry: span of type %T", span)
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), s.Span), carrier)
	return carrier, nil
}

func (t *temporalTracer) SpanFromContext(ctx context.Context) interceptor.TracerSpan {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsValid() {
		return nil
	}
	return &temporalSpan{Span: span}
}

func (t *temporalTracer) ContextWithSpan(ctx context.Context, span interceptor.TracerSpan) context.Context {
	s, ok := span.(*temporalSpan)
	if !ok {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.Span)
}

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

// SpanName implements [interceptor.Tracer]. The names of schedules are their callers' and no part
// of it.
func (t *temporalTracer) SpanName(o *interceptor.TracerStartSpanOptions) string {
	if o.Operation == operationCreateSchedule {
		return o.Operation
	}
	return t.BaseTracer.SpanName(o)
}

const operationCreateSchedule = "CreateSchedule"

// Operations of workflows, whose spans a replay begins anew.
const (
	operationRunWorkflow  = "RunWorkflow"
	operationHandleUpdate = "HandleUpdate"
)

// durableKey returns the same for the same span in each replay; "" = replays do not begin the span
// anew. The SDK's own IdempotencyKey counts spans, of which a replay begins fewer.
func durableKey(o *interceptor.TracerStartSpanOptions) string {
	if o.Operation != operationRunWorkflow && o.Operation != operationHandleUpdate {
		return ""
	}
	return fmt.Sprint(o.Operation, o.Tags) // fmt sorts the keys of maps
}

func (t *temporalTracer) GetLogger(logger log.Logger, ref interceptor.TracerSpanRef) log.Logger {
	s, ok := ref.(*temporalSpan)
	if !ok {
		return logger
	}
	return log.With(logger, keyTraceID, s.SpanContext().TraceID().String(), keySpanID, s.SpanContext().SpanID().String())
}

// Finish implements [interceptor.TracerSpan].
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

// durableKeyKey is the key of a durable key in a context.
type durableKeyKey struct{}

// spanIDs makes random IDs, and for spans with a durable key IDs that depend on the key alone.
type spanIDs struct{}

var _ sdktrace.IDGenerator = spanIDs{}

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

// TraceParent returns the trace context of ctx as the header traceparent has it; "" = ctx has none.
func TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// queued is the input of a workflow that knows the trace of the request which asked for its run.
type queued interface{ TraceParent() string }

// runTraces comes before Temporal's tracing. An execution that continues another one belongs to the
// trace of its own run: the run before may be another one.
type runTraces struct {
	interceptor.InterceptorBase
}

func (*runTraces) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	w := &runTrace{}
	w.Next = next
	return w
}

// runTrace gives a continued execution the trace of its run.
type runTrace struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (w *runTrace) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	header := interceptor.WorkflowHeader(ctx)
	if len(in.Args) > 0 && header != nil && workflow.GetInfo(ctx).ContinuedExecutionRunID != "" {
		if of, ok := in.Args[0].(queued); ok && of.TraceParent() != "" {
			payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{"traceparent": of.TraceParent()})
			if err == nil { // else the run before is the parent
				header[traceHeader] = payload
			}
		}
	}
	return w.Next.ExecuteWorkflow(ctx, in)
}

// interceptors make spans of what a Temporal client and the workers on it do. The first is the
// outermost.
func interceptors(traces trace.TracerProvider) []interceptor.ClientInterceptor {
	tracing := interceptor.NewTracingInterceptor(&temporalTracer{tracer: traces.Tracer("temporal-sdk-go")})
	return []interceptor.ClientInterceptor{&runTraces{}, tracing, &spanEnds{}}
}

// spanEnds comes after Temporal's tracing. It decides which spans of workflows are reported.
type spanEnds struct {
	interceptor.InterceptorBase
}

func (*spanEnds) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	w := &workflowEnd{}
	w.Next = next
	return w
}

func (*spanEnds) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &activityAttempt{}
	a.Next = next
	return a
}

// workflowEnd reports the spans of workflows.
type workflowEnd struct {
	interceptor.WorkflowInboundInterceptorBase
}

// ExecuteWorkflow reports the span when the workflow returns. A workflow that leaves the worker's
// memory does not return.
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

// activityAttempt adds the attempt to the spans of activities.
type activityAttempt struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity gives the span of an activity the number of the attempt.
func (a *activityAttempt) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	trace.SpanFromContext(ctx).SetAttributes(attrAttempt.Int(int(activity.GetInfo(ctx).Attempt)))
	return a.Next.ExecuteActivity(ctx, in)
}
