package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// RunFinished counts a run that has its terminal record.
func RunFinished(ctx context.Context, agent, outcome, code string) {
	if c, err := otel.Meter(scope).Int64Counter("perdure.runs.finished", metric.WithDescription("runs by how they ended")); err == nil {
		c.Add(ctx, 1, metric.WithAttributes(attribute.String("agent", agent), attribute.String("outcome", outcome), attribute.String("code", code)))
	}
}

// Viewer counts a reader of a run; the returned function ends it, with why it ended.
func Viewer(ctx context.Context) func(end string) {
	open, err := otel.Meter(scope).Int64UpDownCounter("perdure.viewers", metric.WithDescription("open streams of events"))
	if err != nil {
		return func(string) {}
	}
	open.Add(ctx, 1)
	return func(end string) {
		open.Add(ctx, -1)
		if ended, err := otel.Meter(scope).Int64Counter("perdure.viewers.ended", metric.WithDescription("streams of events by why they ended")); err == nil {
			ended.Add(ctx, 1, metric.WithAttributes(attribute.String("end", end)))
		}
	}
}
