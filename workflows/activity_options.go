package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// heartbeatTimeout is after how long without a heartbeat Temporal takes an activity's worker for
// dead. It is the last resort: workers that notice the death of another one report it sooner. A
// heartbeat is a persisted write, so it is rare.
const heartbeatTimeout = 30 * time.Second

// stepAttempts bounds Temporal's attempts of one activity. It is the last resort against a step
// that kills its worker each time. An activity whose step fails by itself gives up sooner.
const stepAttempts = 100

// retryPolicy returns the policy of all activities but webhooks and notifications: a second, then
// twice as long each time, up to 30 seconds. maxAttempts 0 retries without limit.
func retryPolicy(maxAttempts int32) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, MaximumAttempts: maxAttempts}
}

// options returns the options of an activity. The time that is left until the earlier deadline of
// run and step bounds it (at least one second), so a deadline needs no timer. The workflow waits
// for a cancelled activity, because it closes what it opened, and reports what it recorded.
func (r *run) options(ctx workflow.Context, summary string) workflow.ActivityOptions {
	left := max(r.deadline().Sub(workflow.Now(ctx)), time.Second)
	return workflow.ActivityOptions{
		ScheduleToCloseTimeout: left,
		StartToCloseTimeout:    left,
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy:            retryPolicy(stepAttempts),
	}
}

// scheduling returns how a step is executed, with the usual options.
func (r *run) scheduling(ctx workflow.Context, activity, summary string) scheduling {
	return scheduling{
		activity: activity, options: func() workflow.ActivityOptions { return r.options(ctx, summary) },
		stops: func() bool { return r.isStopping(ctx) }, isLogAhead: func(ctx workflow.Context) bool { return r.isLogAhead(ctx, nil) },
		// Temporal gets a notification with the end of the workflow task, and the inbox waits for it. A
		// lost task loses its updates, too, and a cancel that arrives then comes before them.
		awaitsTask: r.thread != nil && (r.thread.isNotifying() || r.thread.hasNewUpdate(ctx)),
	}
}

// deadline returns the earlier deadline of run and step.
func (r *run) deadline() time.Time {
	if active := r.activeStep(); active != nil {
		return runs.Earlier(active.Deadline, r.budget.Deadline)
	}
	return r.budget.Deadline
}
