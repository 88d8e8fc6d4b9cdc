package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// The names of OpenTelemetry's semantic conventions for generative AI stand in this file and nowhere
// else: they are still in development and change. Content, which they make optional, is never sent.
const (
	spanChat        = "chat"
	spanExecuteTool = "execute_tool"

	attrOperation     = attribute.Key("gen_ai.operation.name")
	attrProvider      = attribute.Key("gen_ai.provider.name")
	attrRequestModel  = attribute.Key("gen_ai.request.model")
	attrResponseModel = attribute.Key("gen_ai.response.model")
	attrFinishReasons = attribute.Key("gen_ai.response.finish_reasons")
	attrInputTokens   = attribute.Key("gen_ai.usage.input_tokens")
	attrOutputTokens  = attribute.Key("gen_ai.usage.output_tokens")
	attrConversation  = attribute.Key("gen_ai.conversation.id")
	attrAgentName     = attribute.Key("gen_ai.agent.name")
	attrAgentVersion  = attribute.Key("gen_ai.agent.version")
	attrToolName      = attribute.Key("gen_ai.tool.name")
	attrToolCallID    = attribute.Key("gen_ai.tool.call.id")
	attrErrorType     = attribute.Key("error.type")

	metricDuration   = "gen_ai.client.operation.duration"
	metricFirstChunk = "gen_ai.client.operation.time_to_first_chunk"
	metricTokens     = "gen_ai.client.token.usage"
	attrTokenType    = attribute.Key("gen_ai.token.type")

	attrCost      = attribute.Key("perdure.usage.cost")
	attrEstimated = attribute.Key("perdure.usage.estimated")
	attrCurrency  = attribute.Key("perdure.usage.currency")
	metricCost    = "perdure.model.cost"
)

const scope = "github.com/perdure/perdure"

// Chat is one model call being observed. It is used by one goroutine.
type Chat struct {
	ctx     context.Context
	span    trace.Span
	began   time.Time
	first   bool
	attrs   []attribute.KeyValue
	metered metric.Meter
}

// ChatRequest says what is called. The run that calls it is that of the context.
type ChatRequest struct {
	Provider, Model string
}

// ChatResponse says what came of it. A nil count is unknown; Error is the kind of a failure.
type ChatResponse struct {
	Model, Finish string
	Input, Output *int64
	// Cost is in millionths of the currency; nil = unknown.
	Cost     *int64
	Currency string
	Error    string
	// Estimated tells that the answer was cut before the provider reported its usage: the counts are estimates.
	Estimated bool
}

// StartChat begins a model call. Its context carries the span.
func StartChat(ctx context.Context, r ChatRequest) (context.Context, *Chat) {
	attrs := []attribute.KeyValue{attrOperation.String(spanChat), attrProvider.String(conventional(r.Provider)), attrRequestModel.String(r.Model)}
	ctx, span := otel.Tracer(scope).Start(ctx, spanChat+" "+r.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...),
		trace.WithAttributes(RunFrom(ctx).attributes()...))
	return ctx, &Chat{ctx: ctx, span: span, began: time.Now(), attrs: attrs, metered: otel.Meter(scope)}
}

// conventional is the name that the conventions have for a provider, where it is not ours.
func conventional(provider string) string {
	if provider == "gemini" {
		return "gcp.gemini"
	}
	return provider
}

// Chunk tells that the model has said something.
func (c *Chat) Chunk() {
	if c.first {
		return
	}
	c.first = true
	c.record(metricFirstChunk, time.Since(c.began).Seconds())
}

// End ends the call.
func (c *Chat) End(r ChatResponse) {
	if r.Model != "" {
		c.attrs = append(c.attrs, attrResponseModel.String(r.Model))
		c.span.SetAttributes(attrResponseModel.String(r.Model), attrFinishReasons.StringSlice([]string{r.Finish}))
	}
	if r.Error != "" {
		c.attrs = append(c.attrs, attrErrorType.String(r.Error))
		c.span.SetAttributes(attrErrorType.String(r.Error))
		c.span.SetStatus(codes.Error, r.Error)
	}
	c.usage(r)
	c.record(metricDuration, time.Since(c.began).Seconds())
	c.span.End()
}

// CountCut counts the usage of a model call whose worker died before it could.
func CountCut(ctx context.Context, q ChatRequest, r ChatResponse) {
	attrs := []attribute.KeyValue{attrOperation.String(spanChat), attrProvider.String(conventional(q.Provider)), attrRequestModel.String(q.Model)}
	c := &Chat{ctx: ctx, span: noop.Span{}, attrs: attrs, metered: otel.Meter(scope)}
	c.usage(r)
}

func (c *Chat) usage(r ChatResponse) {
	if r.Estimated {
		c.span.SetAttributes(attrEstimated.Bool(true))
	}
	c.tokens(attrInputTokens, "input", r.Input, r.Estimated)
	c.tokens(attrOutputTokens, "output", r.Output, r.Estimated)
	c.cost(r)
}

// tokens has the attribute of estimates on both kinds of counts, so that one can be told from the other.
func (c *Chat) tokens(key attribute.Key, kind string, n *int64, estimated bool) {
	if n == nil {
		return
	}
	c.span.SetAttributes(key.Int64(*n))
	c.record(metricTokens, float64(*n), attrTokenType.String(kind), attrEstimated.Bool(estimated))
}

// cost has names of our own: the conventions have none.
func (c *Chat) cost(r ChatResponse) {
	if r.Cost == nil {
		return
	}
	amount := float64(*r.Cost) / 1e6
	c.span.SetAttributes(attrCost.Float64(amount), attrCurrency.String(r.Currency))
	if sum, err := c.metered.Float64Counter(metricCost, metric.WithDescription("what model calls have cost")); err == nil {
		sum.Add(c.ctx, amount, metric.WithAttributes(append([]attribute.KeyValue{attrCurrency.String(r.Currency), attrEstimated.Bool(r.Estimated)}, c.attrs...)...))
	}
}

// Buckets that the conventions recommend.
var (
	durationBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenBuckets    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// histograms are the metrics of model calls.
var histograms = map[string]struct {
	unit, description string
	buckets           []float64
}{
	metricDuration:   {"s", "duration of model calls", durationBuckets},
	metricFirstChunk: {"s", "time from the request to the first chunk of the answer", durationBuckets},
	metricTokens:     {"{token}", "tokens that model calls used", tokenBuckets},
}

func (c *Chat) record(name string, value float64, extra ...attribute.KeyValue) {
	m := histograms[name]
	h, err := c.metered.Float64Histogram(name, metric.WithUnit(m.unit), metric.WithDescription(m.description), metric.WithExplicitBucketBoundaries(m.buckets...))
	if err == nil { // a name that the SDK refuses costs a figure, not a run
		h.Record(c.ctx, value, metric.WithAttributes(append(extra, c.attrs...)...))
	}
}

// StartTool begins a tool call of the context's run; the returned function ends it, with the kind of its failure or "".
func StartTool(ctx context.Context, tool, callID string) (context.Context, func(failure string)) {
	ctx, span := otel.Tracer(scope).Start(ctx, spanExecuteTool+" "+tool, trace.WithAttributes(
		attrOperation.String(spanExecuteTool), attrToolName.String(tool), attrToolCallID.String(callID)),
		trace.WithAttributes(RunFrom(ctx).attributes()...))
	return ctx, func(failure string) {
		if failure != "" {
			span.SetAttributes(attrErrorType.String(failure))
			span.SetStatus(codes.Error, failure)
		}
		span.End()
	}
}
