package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Attributes of spans that belong to a run.
const (
	attrTenant  = attribute.Key("perdure.tenant")
	attrThread  = attribute.Key("perdure.thread.id")
	attrRun     = attribute.Key("perdure.run.id")
	attrAttempt = attribute.Key("perdure.attempt")
)

// Run identifies the run of a span or a log line. Empty fields are unknown and left out.
type Run struct {
	Tenant, Thread, ID string
	Agent, Revision    string
	// Attempt is the number of an activity's attempt, from 1; 0 = outside of an activity.
	Attempt int
}

// runKey is the context key of a Run.
type runKey struct{}

// WithRun returns a context of a run. Log lines and spans of model and tool calls that use the
// context have the run's attributes. WithRun also sets them on the span in ctx.
func WithRun(ctx context.Context, r Run) context.Context {
	trace.SpanFromContext(ctx).SetAttributes(r.attributes()...)
	return context.WithValue(ctx, runKey{}, r)
}

// RunFrom returns the run of a context of [WithRun]; the zero Run if there is none.
func RunFrom(ctx context.Context) Run {
	r, _ := ctx.Value(runKey{}).(Run)
	return r
}

// attributes returns the run's attributes of spans.
func (r Run) attributes() []attribute.KeyValue {
	var all []attribute.KeyValue
	add := func(value string, keys ...attribute.Key) {
		for _, key := range keys {
			if value != "" {
				all = append(all, key.String(value))
			}
		}
	}
	add(r.Tenant, attrTenant)
	add(r.Thread, attrThread, attrConversation)
	add(r.ID, attrRun)
	add(r.Agent, attrAgentName)
	add(r.Revision, attrAgentVersion)
	if r.Attempt > 0 {
		all = append(all, attrAttempt.Int(r.Attempt))
	}
	return all
}

// Attrs returns the run's attributes of log lines: tenant, thread, run, agent and attempt.
func (r Run) Attrs() []slog.Attr {
	var all []slog.Attr
	for _, a := range [...]slog.Attr{
		slog.String(keyTenant, r.Tenant), slog.String(keyThread, r.Thread), slog.String(keyRun, r.ID), slog.String(keyAgent, r.Agent),
	} {
		if a.Value.String() != "" {
			all = append(all, a)
		}
	}
	if r.Attempt > 0 {
		all = append(all, slog.Int(keyAttempt, r.Attempt))
	}
	return all
}

// RunFinished counts a run whose terminal record was written.
func RunFinished(ctx context.Context, agent, outcome, code string) {
	runsFinished.count(ctx, 1, labelAgent.String(agent), labelOutcome.String(outcome), labelCode.String(code))
}

// Viewer counts an open event stream. The caller calls the returned function once, at the end of
// the stream, with the reason.
func Viewer(ctx context.Context) func(end string) {
	viewers.count(ctx, 1)
	return func(end string) {
		viewers.count(ctx, -1)
		viewersEnded.count(ctx, 1, labelEnd.String(end))
	}
}

// Expired counts what the retention removed: n of a kind, threads or audit.
func Expired(ctx context.Context, kind string, n int64) {
	if n > 0 {
		expired.count(ctx, n, labelKind.String(kind))
	}
}
