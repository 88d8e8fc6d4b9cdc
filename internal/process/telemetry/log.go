package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Keys of log lines.
const (
	keyTraceID = "trace_id"
	keySpanID  = "span_id"
	keyTenant  = "tenant"
	keyThread  = "thread"
	keyRun     = "run"
	keyAgent   = "agent"
	keyAttempt = "attempt"
)

var runKeys = []string{keyTenant, keyThread, keyRun, keyAgent, keyAttempt}

// traceHandler adds trace_id and span_id to lines that are logged within a span, and the attributes
// of the run to lines that are logged with its context.
type traceHandler struct {
	slog.Handler

	keys map[string]bool // of the attributes that all lines have
}

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	own := maps.Clone(h.keys)
	if own == nil {
		own = map[string]bool{}
	}
	of := RunFrom(ctx).Attrs()
	r.Attrs(func(a slog.Attr) bool {
		own[a.Key] = true
		if a.Key == keyWorkflowID && len(of) == 0 {
			of = threadOf(a.Value.String())
		}
		return true
	})
	for _, a := range of {
		if !own[a.Key] { // the line itself may be more exact
			r.AddAttrs(a)
		}
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String(keyTraceID, span.TraceID().String()), slog.String(keySpanID, span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler]. An attribute of a run that is there already is left out.
// Lines of Temporal's SDK get the tenant and the thread from the ID of the workflow.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	keys := maps.Clone(h.keys)
	if keys == nil {
		keys = map[string]bool{}
	}
	var kept []slog.Attr
	add := func(a slog.Attr) {
		if keys[a.Key] && slices.Contains(runKeys, a.Key) {
			return
		}
		keys[a.Key] = true
		kept = append(kept, a)
	}
	for _, a := range attrs {
		add(a)
		if a.Key == keyWorkflowID {
			for _, more := range threadOf(a.Value.String()) {
				add(more)
			}
		}
	}
	return traceHandler{h.Handler.WithAttrs(kept), keys}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name), nil}
}

// keyWorkflowID is the key of Temporal's SDK.
const keyWorkflowID = "WorkflowID"

// threadOf returns the tenant and the thread that the ID of a workflow names:
// thread/<tenant>/<thread>, maybe with more after that. A part that begins with ~ is a digest and
// left out.
func threadOf(workflowID string) []slog.Attr {
	parts := strings.Split(workflowID, "/")
	if len(parts) < 3 || parts[0] != "thread" {
		return nil
	}
	var attrs []slog.Attr
	for i, key := range []string{keyTenant, keyThread} {
		if value := parts[i+1]; value != "" && !strings.HasPrefix(value, "~") {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	return attrs
}
