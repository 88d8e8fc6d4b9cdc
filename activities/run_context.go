package activities

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"

	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file connects activities with telemetry: spans and log lines carry the run.

// inRun returns a context whose spans and log lines have the run, the agent and, in an activity,
// the attempt. revision may be empty.
func inRun(ctx context.Context, r runs.Ref, agent, revision string) context.Context {
	labels := telemetry.Run{Tenant: r.Tenant, Thread: r.Thread, ID: r.ID, Agent: agent, Revision: revision}
	if activity.IsActivity(ctx) {
		labels.Attempt = attemptOf(ctx)
	}
	return telemetry.WithRun(ctx, labels)
}

// inStep is inRun for the run and the agent of a step. The context also has the step's attempts in
// other activities.
func inStep(ctx context.Context, s runs.Step) context.Context {
	ctx = context.WithValue(ctx, earlierKey{}, s.Earlier)
	return inRun(ctx, s.Run, s.Agent, s.Revision)
}

// earlierKey is the key of the runs.EarlierAttempts in a context of inStep.
type earlierKey struct{}

// earlierAttempts returns the attempts of the context's step in other activities.
func earlierAttempts(ctx context.Context) runs.EarlierAttempts {
	earlier, _ := ctx.Value(earlierKey{}).(runs.EarlierAttempts)
	return earlier
}

// afterUnfinished returns a context whose attempt number counts an unfinished attempt of the step of
// which the activity does not know: that of a workflow task that was lost.
func afterUnfinished(ctx context.Context, s runs.Step, attempt *stream.Attempt) context.Context {
	if !attempt.FollowsUnfinished() || attemptOf(ctx) > 1 {
		return ctx
	}
	s.Earlier.Count = 1
	return inStep(ctx, s)
}

// attemptOf returns the number of the attempt of the context's step, from 1.
func attemptOf(ctx context.Context) int {
	return earlierAttempts(ctx).Count + int(activity.GetInfo(ctx).Attempt)
}

// logger returns the activity's logger with the attributes of inRun.
func logger(ctx context.Context) log.Logger {
	var attrs []any
	for _, a := range telemetry.RunFrom(ctx).Attrs() {
		attrs = append(attrs, a.Key, a.Value.Any())
	}
	return log.With(activity.GetLogger(ctx), attrs...)
}
