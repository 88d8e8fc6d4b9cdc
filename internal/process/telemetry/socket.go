package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Socket counts an open WebSocket. The returned function counts its end, with the close code. The
// returned context carries the trace of the handshake, for the frames: a span of the WebSocket
// itself would be open for hours.
func Socket(ctx context.Context, handshake http.Header) (context.Context, func(code int)) {
	ctx = otel.GetTextMapPropagator().Extract(ctx, propagation.HeaderCarrier(handshake))
	sockets.count(ctx, 1)
	return ctx, func(code int) {
		sockets.count(ctx, -1)
		socketsEnded.count(ctx, 1, labelCode.Int(code))
	}
}

// Frame begins the span of a frame, the counterpart of an HTTP request. The returned function ends
// it, with the status and the code of its failure, or 0 and "".
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
