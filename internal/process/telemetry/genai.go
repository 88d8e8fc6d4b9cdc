package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// The names of OpenTelemetry's semantic conventions for generative AI are in this file only,
// because the conventions are in development and change. Content, which they make optional, is
// never sent.
const (
	spanChat        = "chat"
	spanExecuteTool = "execute_tool"
	spanInvokeAgent = "invoke_agent"

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
	attrWait      = attribute.Key("perdure.model.wait")
	metricWait    = "perdure.model.wait"
)

// scope is the instrumentation scope of Perdure's own spans and metrics.
const scope = "github.com/perdure/perdure"

// Chat observes one model call, or one run of an agent on another server: it records the span and the
// metrics. StartChat or StartAgent makes it, End closes it. It is not safe for concurrent use.
type Chat struct {
	ctx      context.Context
	span     trace.Span
	start    time.Time
	request  ChatRequest
	hasChunk bool // Chunk was called
	attrs    []attribute.KeyValue
}

// ChatRequest is the provider and the model of a call. The run is that of the context.
type ChatRequest struct {
	Provider, Model string
}

// ChatResponse is the outcome of a call. A nil count is unknown. Error is the kind of the failure;
// "" = success.
type ChatResponse struct {
	Model, Finish string
	Input, Output *int64
	// Cost is in millionths of the currency; nil = unknown.
	Cost     *int64
	Currency string
	Error    string
	// Estimated reports that the answer was cut before the provider reported its usage, so the
	// counts are estimates.
	Estimated bool
}

// StartChat starts the span of a model call. The returned context has the span. The caller must
// call Chat.End.
func StartChat(ctx context.Context, r ChatRequest) (context.Context, *Chat) {
	attrs := []attribute.KeyValue{attrOperation.String(spanChat), attrProvider.String(conventional(r.Provider)), attrRequestModel.String(r.Model)}
	ctx, span := otel.Tracer(scope).Start(ctx, spanChat+" "+r.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...),
		trace.WithAttributes(RunFrom(ctx).attributes()...))
	return ctx, &Chat{ctx: ctx, span: span, start: time.Now(), request: r, attrs: attrs}
}

// StartAgent starts the span of a run of an agent on another server. It is used like the result of
// StartChat.
func StartAgent(ctx context.Context, agent string) (context.Context, *Chat) {
	attrs := []attribute.KeyValue{attrOperation.String(spanInvokeAgent), attrAgentName.String(agent)}
	ctx, span := otel.Tracer(scope).Start(ctx, spanInvokeAgent+" "+agent, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...),
		trace.WithAttributes(RunFrom(ctx).attributes()...))
	return ctx, &Chat{ctx: ctx, span: span, start: time.Now(), attrs: attrs}
}

// conventional returns the name of a provider in the semantic conventions.
func conventional(provider string) string {
	if provider == "gemini" {
		return "gcp.gemini"
	}
	return provider
}

// Waited records that the call has waited for its admission since StartChat. The duration of the call
// begins now. It is called before Chunk.
func (c *Chat) Waited(d time.Duration) {
	modelWait.record(c.ctx, d.Seconds(), labelProvider.String(c.request.Provider), labelModel.String(c.request.Model))
	c.span.SetAttributes(attrWait.Float64(d.Seconds()))
	c.start = time.Now()
}

// CountOpenCircuits adds n to the models whose circuit is open.
func CountOpenCircuits(ctx context.Context, provider, model string, n int64) {
	openCircuits.count(ctx, n, labelProvider.String(provider), labelModel.String(model))
}

// Chunk records the arrival of a chunk of the answer. Calls after the first have no effect.
func (c *Chat) Chunk() {
	if c.hasChunk {
		return
	}
	c.hasChunk = true
	modelFirstChunk.record(c.ctx, time.Since(c.start).Seconds(), c.attrs...)
}

// End records the outcome of the call and ends its span. It is called once.
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
	modelDuration.record(c.ctx, time.Since(c.start).Seconds(), c.attrs...)
	c.span.End()
}

// CountCut records the usage of a model call whose worker died before it could record it. There is
// no span: it died with the worker.
func CountCut(ctx context.Context, q ChatRequest, r ChatResponse) {
	attrs := []attribute.KeyValue{attrOperation.String(spanChat), attrProvider.String(conventional(q.Provider)), attrRequestModel.String(q.Model)}
	c := &Chat{ctx: ctx, span: noop.Span{}, attrs: attrs}
	c.usage(r)
}

// usage records tokens and cost, in metrics and in the span.
func (c *Chat) usage(r ChatResponse) {
	if r.Estimated {
		c.span.SetAttributes(attrEstimated.Bool(true))
	}
	c.tokens(attrInputTokens, "input", r.Input, r.Estimated)
	c.tokens(attrOutputTokens, "output", r.Output, r.Estimated)
	c.cost(r)
}

// tokens records a token count; nil = unknown. Both reported and estimated counts have the
// attribute of estimates, so that a query can separate them.
func (c *Chat) tokens(key attribute.Key, kind string, n *int64, estimated bool) {
	if n == nil {
		return
	}
	c.span.SetAttributes(key.Int64(*n))
	modelTokens.record(c.ctx, float64(*n), append([]attribute.KeyValue{attrTokenType.String(kind), attrEstimated.Bool(estimated)}, c.attrs...)...)
}

// cost records the cost of the call. Its names are Perdure's own: the conventions have none.
func (c *Chat) cost(r ChatResponse) {
	if r.Cost == nil {
		return
	}
	amount := float64(*r.Cost) / 1e6
	c.span.SetAttributes(attrCost.Float64(amount), attrCurrency.String(r.Currency))
	modelCost.record(c.ctx, amount, append([]attribute.KeyValue{attrCurrency.String(r.Currency), attrEstimated.Bool(r.Estimated)}, c.attrs...)...)
}

// StartTool starts the span of a tool call of the context's run. The caller calls the returned
// function once, with the kind of the failure or "".
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
