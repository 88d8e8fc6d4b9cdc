package request

import (
	"context"

	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/stream"
)

// WithRun returns a context whose span and log lines name a run and its agent. An empty agent is
// unknown.
func WithRun(ctx context.Context, run stream.Run, agent string) context.Context {
	return telemetry.WithRun(ctx, telemetry.Run{Tenant: run.Thread.Tenant, Thread: run.Thread.ID, ID: run.ID, Agent: agent})
}
