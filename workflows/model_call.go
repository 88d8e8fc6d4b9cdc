package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A turn asks for a model call; how it is executed is the business of this file. The call begins as
// a local activity, within the workflow task. Most calls end there. One that takes longer, or that
// keeps an update waiting, leaves the task (runs.ModelAnswer.ContinuesOn): an activity on the task
// queue of the same process awaits it. If that process dies, or the attempt fails, an activity on
// the main task queue makes the other attempts:
//
//	local activity ──answer──────────────────────────────────────────► turn
//	   │   └─ContinuesOn─► activity on the process's queue ──answer──────┤
//	   │                              │ failed, died, or did not take it  │
//	   └──────────failed──────────────┴─► pause ─► activity ──────────────┘

// claimTimeout is how long the activity that awaits a call may wait for the call's process. After
// that the process is taken for dead.
const claimTimeout = 2 * time.Second

// executeModelCall makes the model call of a turn, with all its attempts, and blocks until it has
// ended.
func (r *run) executeModelCall(ctx workflow.Context, in runs.ModelCall) (runs.ModelAnswer, error) {
	options := r.options(ctx, fmt.Sprintf("turn %d", r.turn))
	in = runs.Copy(in) // handlers may change what it refers to
	// Temporal gets a notification with the end of the workflow task, and the inbox waits for it.
	if r.thread != nil && r.thread.isNotifying() {
		return modelActivity(ctx, in, options)
	}
	answer, err := firstModelAttempt(ctx, in, options)
	if answer.ContinuesOn == "" && (err == nil || !isAttemptedAgain(ctx, err)) {
		return answer, err
	}
	if err != nil {
		in.Earlier = runs.EarlierAttempts{Count: 1}
		if isOwnFailure(err) {
			in.Earlier.Failures = 1
		}
		pause := pauseAfter(err)
		if !workflow.Now(ctx).Add(pause).Before(r.deadline()) { // Temporal makes no such attempt of an activity, either
			return runs.ModelAnswer{}, errorAtDeadline(err)
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return runs.ModelAnswer{}, err
		}
	}
	return modelActivity(ctx, in, r.options(ctx, options.Summary))
}

// firstModelAttempt makes the first attempt of a model call: within the workflow task and, if the
// call leaves that, on the task queue of the same process. The answer has ContinuesOn if the call did
// not begin, because the process has no room for it.
func firstModelAttempt(ctx workflow.Context, in runs.ModelCall, options workflow.ActivityOptions) (answer runs.ModelAnswer, err error) {
	if ctx.Err() != nil {
		return answer, ctx.Err()
	}
	once := retryPolicy(1)
	// A cancel ends the call itself, which then reports what it has recorded. The workflow must not
	// stop waiting before that. A context that is cancelled cannot await an activity, either.
	uncancelled, release := workflow.NewDisconnectedContext(ctx)
	defer release()
	local := workflow.WithLocalActivityOptions(uncancelled, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: options.ScheduleToCloseTimeout, RetryPolicy: once, Summary: options.Summary,
	})
	err = workflow.ExecuteLocalActivity(local, runs.ActivityCallModel, in).Get(uncancelled, &answer)
	if err != nil || answer.ContinuesOn == "" || answer.ContinuesOn == runs.TaskQueue {
		return answer, err
	}
	if ctx.Err() != nil {
		ctx = uncancelled
	}
	options.TaskQueue, options.ScheduleToStartTimeout, options.RetryPolicy = answer.ContinuesOn, claimTimeout, once
	return modelActivity(ctx, in, options)
}

// modelActivity schedules the activity of a model call, and blocks until it has ended.
func modelActivity(ctx workflow.Context, in runs.ModelCall, options workflow.ActivityOptions) (answer runs.ModelAnswer, err error) {
	ctx = workflow.WithActivityOptions(ctx, options)
	err = workflow.ExecuteActivity(ctx, runs.ActivityCallModel, in).Get(ctx, &answer)
	return answer, err
}

// isAttemptedAgain reports whether a model call whose first attempt failed is attempted again: the
// error is not final, the process of the attempt has died, or no process has taken the activity in
// time.
func isAttemptedAgain(ctx workflow.Context, err error) bool {
	var (
		app      *temporal.ApplicationError
		timedOut *temporal.TimeoutError
	)
	switch {
	case ctx.Err() != nil || temporal.IsCanceledError(err):
		return false
	case errors.As(err, &timedOut):
		return timedOut.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START || timedOut.TimeoutType() == enums.TIMEOUT_TYPE_HEARTBEAT
	case errors.As(err, &app):
		return !app.NonRetryable()
	}
	return false
}

// isOwnFailure reports whether an attempt failed by itself, and not because of its worker, the log
// or another attempt.
func isOwnFailure(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() != runs.ErrorFenced && !slices.Contains(externalFailures, app.Type())
}

// errorAtDeadline returns the error of a call whose last attempt failed with err, and which has no
// time for another one: err, or a timeout if the attempt did not fail by itself.
func errorAtDeadline(err error) error {
	if isOwnFailure(err) {
		return err
	}
	return temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)
}

// pauseAfter returns the pause between a failed first attempt and the next one, as Temporal pauses
// between the attempts of one activity.
func pauseAfter(err error) time.Duration {
	var app *temporal.ApplicationError
	switch {
	case !errors.As(err, &app), app.Type() == runs.ErrorWorkerLost: // another process continues at once
		return 0
	case app.NextRetryDelay() > 0:
		return app.NextRetryDelay()
	}
	return retryPolicy(stepAttempts).InitialInterval
}
