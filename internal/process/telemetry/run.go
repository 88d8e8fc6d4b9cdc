package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Attributes of spans that belong to an AG-UI run.
const (
	attrTenant  = attribute.Key("perdure.tenant")
	attrThread  = attribute.Key("perdure.thread.id")
	attrRun     = attribute.Key("perdure.run.id")
	attrAttempt = attribute.Key("perdure.attempt")
)

// Run names the AG-UI run that a span or a log line belongs to. Empty members are unknown and left
// out.
type Run struct {
	Tenant, Thread, ID string
	Agent, Revision    string
	// Attempt counts the attempts of an activity from 1.
	Attempt int
}

// runKey is the key of a Run in a context.
type runKey struct{}

// WithRun makes ctx a context of the run: spans of model and tool calls and log lines made with it
// name the run. The span in ctx gets the run's attributes.
func WithRun(ctx context.Context, r Run) context.Context {
	trace.SpanFromContext(ctx).SetAttributes(r.attributes()...)
	return context.WithValue(ctx, runKey{}, r)
}

// RunFrom returns the run of a context of [WithRun], or the zero Run.
func RunFrom(ctx context.Context) Run {
	r, _ := ctx.Value(runKey{}).(Run)
	return r
}

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

// Attrs returns the attributes of the run's log lines: tenant, thread, run, agent, and attempt.
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

// RunFinished counts a run that has its terminal record.
func RunFinished(ctx context.Context, agent, outcome, code string) {
	runsFinished.count(ctx, 1, labelAgent.String(agent), labelOutcome.String(outcome), labelCode.String(code))
}

// Viewer counts an open event stream. The returned function counts its end, with the reason.
func Viewer(ctx context.Context) func(end string) {
	viewers.count(ctx, 1)
	return func(end string) {
		viewers.count(ctx, -1)
		viewersEnded.count(ctx, 1, labelEnd.String(end))
	}
}
