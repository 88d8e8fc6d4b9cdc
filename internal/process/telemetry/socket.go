package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Socket counts an open WebSocket. The caller calls the returned function once, at its end, with
// the close code. The returned context has the trace context of the handshake, for the spans of
// frames. The WebSocket itself has no span: it would be open for hours.
func Socket(ctx context.Context, handshake http.Header) (context.Context, func(code int)) {
	ctx = otel.GetTextMapPropagator().Extract(ctx, propagation.HeaderCarrier(handshake))
	sockets.count(ctx, 1)
	return ctx, func(code int) {
		sockets.count(ctx, -1)
		socketsEnded.count(ctx, 1, labelCode.Int(code))
	}
}

// Frame starts the span of a client's frame, the counterpart of an HTTP request. route is the route
// that has received the frame, and kind the type of the frame. The caller calls the returned
// function once, with the status and the code of the frame's failure, or 0 and "".
func Frame(ctx context.Context, route, kind string) (context.Context, func(status int, code string)) {
	ctx, span := otel.Tracer(scope).Start(ctx, route+" "+kind, trace.WithSpanKind(trace.SpanKindServer))
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
