package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"

	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
)

// This file connects activities with telemetry: spans and log lines carry the run.

// inRun returns a context whose spans and log lines have the run, the agent and, in an activity,
// the attempt. revision may be empty.
func inRun(ctx context.Context, r runs.Ref, agent, revision string) context.Context {
	labels := telemetry.Run{Tenant: r.Tenant, Thread: r.Thread, ID: r.ID, Agent: agent, Revision: revision}
	if activity.IsActivity(ctx) {
		labels.Attempt = int(activity.GetInfo(ctx).Attempt)
	}
	return telemetry.WithRun(ctx, labels)
}

// inStep is inRun for the run and the agent of a step.
func inStep(ctx context.Context, s runs.Step) context.Context {
	return inRun(ctx, s.Run, s.Agent, s.Revision)
}

// logger returns the activity's logger with the attributes of inRun.
func logger(ctx context.Context) log.Logger {
	var attrs []any
	for _, a := range telemetry.RunFrom(ctx).Attrs() {
		attrs = append(attrs, a.Key, a.Value.Any())
	}
	return log.With(activity.GetLogger(ctx), attrs...)
}
