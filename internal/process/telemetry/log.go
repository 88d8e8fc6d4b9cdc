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

// runKeys are the keys of a run's attributes, see [Run.Attrs].
var runKeys = []string{keyTenant, keyThread, keyRun, keyAgent, keyAttempt}

// traceHandler adds attributes to log lines: trace_id and span_id if the context has a span, and
// the attributes of the run if it is a context of [WithRun]. It is safe for concurrent use.
type traceHandler struct {
	slog.Handler

	keys map[string]bool // of the attributes that WithAttrs has added
}

// Handle implements [slog.Handler]. Attributes of the line itself take precedence over those of the
// run.
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	lineKeys := maps.Clone(h.keys)
	if lineKeys == nil {
		lineKeys = map[string]bool{}
	}
	labels := RunFrom(ctx).Attrs()
	r.Attrs(func(a slog.Attr) bool {
		lineKeys[a.Key] = true
		if a.Key == keyWorkflowID && len(labels) == 0 {
			labels = threadOf(a.Value.String())
		}
		return true
	})
	for _, a := range labels {
		if !lineKeys[a.Key] { // the line's own value may be more exact
			r.AddAttrs(a)
		}
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String(keyTraceID, span.TraceID().String()), slog.String(keySpanID, span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler]. It leaves out an attribute of a run whose key the logger
// has. A logger of Temporal's SDK has the ID of a workflow; it also gets the tenant and the thread
// of that ID.
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

// WithGroup implements [slog.Handler]. Keys of a group do not collide with those outside of it.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name), nil}
}

// keyWorkflowID is the key under which Temporal's SDK logs the ID of a workflow.
const keyWorkflowID = "WorkflowID"

// threadOf returns the tenant and the thread in the ID of a workflow: thread/<tenant>/<thread>,
// possibly with further parts. It leaves out a part that begins with "~": that is a digest
// (stream.Token).
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
