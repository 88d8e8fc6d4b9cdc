package workflows

import (
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A turn asks for a model call or a tool call, a pipeline for an advance; how such a step is executed
// is the business of this file. It begins as a local activity, within the workflow task. Most steps
// end there. One that takes longer, or that keeps an update waiting, leaves the task
// (runs.LocalAnswer): an activity on the task queue of the same process awaits it. If that process
// dies, or the attempt fails, an activity on the main task queue makes the other attempts:
//
//	local activity ──answer──────────────────────────────────────────► workflow
//	   │   └─ContinuesOn─► activity on the process's queue ──answer──────┤
//	   │                              │ failed, died, or did not take it  │
//	   └──────────failed──────────────┴─► pause ─► activity ──────────────┘
//
// Commands that the workflow has issued before, such as the start of a child workflow, wait for the
// end of the task: at most 1.2 seconds (activities/step_execution.go).

// claimTimeout is how long the activity that awaits a step may wait for the step's process. After
// that the process is taken for dead.
const claimTimeout = 2 * time.Second

// stepInput is the input of an activity that executes a step.
type stepInput[In any] interface {
	// AfterAttempts returns the input for an activity that continues after earlier attempts.
	AfterAttempts(earlier runs.EarlierAttempts) In
	// Stopping returns the input for a run that stops (runs.Step.Stops).
	Stopping() In
}

// stepOutput is the output of an activity that executes a step: it embeds runs.LocalAnswer.
type stepOutput interface{ NextQueue() string }

// scheduling is how a step is executed.
type scheduling struct {
	activity string
	// options returns the options of an activity that is scheduled now.
	options func() workflow.ActivityOptions
	// awaitsTask tells that the step must not be executed within the workflow task: other commands
	// wait for the task's end.
	awaitsTask bool
	// stops reports whether the step must not begin any more, isLogAhead whether the log may have it
	// nevertheless (log_ahead.go).
	stops      func() bool
	isLogAhead func(workflow.Context) bool
}

// executeStep executes a step with all its attempts, and blocks until it has ended. The error is
// errNotBegun if the run stops before the step.
func executeStep[Out stepOutput, In stepInput[In]](ctx workflow.Context, in In, e scheduling) (answer Out, err error) {
	in = runs.Copy(in) // handlers may change what it refers to
	switch {
	case e.stops() && !e.isLogAhead(ctx):
		return answer, errNotBegun
	case e.stops():
		in = in.Stopping()
		var release workflow.CancelFunc
		ctx, release = workflow.NewDisconnectedContext(ctx)
		defer release()
	case e.awaitsTask:
		return stepActivity[Out](ctx, in, e.activity, e.options())
	}
	options, began := e.options(), workflow.Now(ctx)
	answer, err = firstAttempt[Out](ctx, in, e.activity, options)
	if answer.NextQueue() == "" && (err == nil || !isAttemptedAgain(ctx, err)) {
		return answer, err
	}
	if err != nil {
		earlier := runs.EarlierAttempts{Count: 1}
		if isOwnFailure(err) && !isUnreachable(err) {
			earlier.Failures = 1
		}
		in = in.AfterAttempts(earlier)
		pause := pauseAfter(err)
		if deadline := began.Add(options.ScheduleToCloseTimeout); !workflow.Now(ctx).Add(pause).Before(deadline) { // Temporal makes no such attempt of an activity, either
			return answer, errorAtDeadline(err)
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return answer, err
		}
	}
	return stepActivity[Out](ctx, in, e.activity, e.options())
}

// firstAttempt makes the first attempt of a step: within the workflow task and, if the step leaves
// that, on the task queue of the same process. The answer has ContinuesOn if the attempt did not
// begin, because the process has no room for it.
func firstAttempt[Out stepOutput](ctx workflow.Context, in any, activity string, options workflow.ActivityOptions) (answer Out, err error) {
	if ctx.Err() != nil {
		return answer, ctx.Err()
	}
	once := retryPolicy(1)
	// A cancel ends the step itself, which then reports what it has recorded. The workflow must not
	// stop waiting before that. A context that is cancelled cannot await an activity, either.
	uncancelled, release := workflow.NewDisconnectedContext(ctx)
	defer release()
	local := workflow.WithLocalActivityOptions(uncancelled, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: options.ScheduleToCloseTimeout, RetryPolicy: once, Summary: options.Summary,
	})
	err = workflow.ExecuteLocalActivity(local, activity, in).Get(uncancelled, &answer)
	queue := answer.NextQueue()
	if err != nil || queue == "" || queue == runs.TaskQueue {
		return answer, err
	}
	if ctx.Err() != nil {
		ctx = uncancelled
	}
	options.TaskQueue, options.ScheduleToStartTimeout, options.RetryPolicy = queue, claimTimeout, once
	return stepActivity[Out](ctx, in, activity, options)
}

// stepActivity schedules the activity of a step, and blocks until it has ended.
func stepActivity[Out any](ctx workflow.Context, in any, activity string, options workflow.ActivityOptions) (answer Out, err error) {
	ctx = workflow.WithActivityOptions(ctx, options)
	err = workflow.ExecuteActivity(ctx, activity, in).Get(ctx, &answer)
	return answer, err
}

// isAttemptedAgain reports whether a step whose first attempt failed is attempted again: the
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

// isUnreachable reports whether an attempt failed because the server of a remote agent accepts no
// connection. Such attempts have a bound of their own.
func isUnreachable(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == runs.ErrorRemoteUnreachable
}

// errorAtDeadline returns the error of a step whose last attempt failed with err, and which has no
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
