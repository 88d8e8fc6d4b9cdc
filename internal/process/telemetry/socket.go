package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Socket counts a client's socket; the returned function ends it, with the code it was closed with.
// The context carries the trace that the handshake belongs to, for the frames; a span of its own
// would be open for hours.
func Socket(ctx context.Context, handshake http.Header) (context.Context, func(code int)) {
	ctx = otel.GetTextMapPropagator().Extract(ctx, propagation.HeaderCarrier(handshake))
	open, err := otel.Meter(scope).Int64UpDownCounter("perdure.sockets", metric.WithDescription("open WebSockets"))
	if err != nil {
		return ctx, func(int) {}
	}
	open.Add(ctx, 1)
	return ctx, func(code int) {
		open.Add(ctx, -1)
		if ended, err := otel.Meter(scope).Int64Counter("perdure.sockets.ended", metric.WithDescription("WebSockets by the code they were closed with")); err == nil {
			ended.Add(ctx, 1, metric.WithAttributes(attribute.Int("code", code)))
		}
	}
}

// Frame begins what a frame of a socket asks for, as a request is begun elsewhere; the returned
// function ends it, with the status and the code of its failure, or 0 and "".
func Frame(ctx context.Context, kind string) (context.Context, func(status int, code string)) {
	ctx, span := otel.Tracer(scope).Start(ctx, "GET /v1/ws "+kind, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func(status int, code string) {
		if code != "" {
			span.SetAttributes(attrErrorType.String(code))
		}
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, code)
		}
		span.End()
	}
}
