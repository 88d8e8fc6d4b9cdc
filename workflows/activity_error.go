package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// externalFailures are the error types of attempts that failed without a fault of the step: its
// worker died or stopped, NATS was unavailable, or the model may not be called yet.
var externalFailures = []string{runs.ErrorWorkerLost, runs.ErrorWorkerStopped, runs.ErrorLogUnavailable, runs.ErrorProviderBusy}

// timedOutByOutage reports whether an activity ran out of time because of external failures.
// Temporal then reports the error of the last attempt instead of a timeout.
func timedOutByOutage(err error) bool {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || !slices.Contains(externalFailures, app.Type()) {
		return false
	}
	var ended *temporal.ActivityError
	if errors.As(err, &ended) && ended.RetryState() == enums.RETRY_STATE_TIMEOUT {
		return true
	}
	var timedOut *temporal.TimeoutError
	return errors.As(err, &timedOut) && timedOut.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
}

// endingFromError turns an activity's error into the end of the run or step. An error after ctx has
// ended counts as a cancel. The message is never content: what a model or a tool returned is in the
// log.
func (r *run) endingFromError(ctx workflow.Context, err error) ending {
	var app *temporal.ApplicationError
	var timedOut *temporal.TimeoutError
	switch {
	case temporal.IsCanceledError(err) || ctx.Err() != nil:
		return cancelledEnding
	case errors.Is(err, errNotBegun):
		return r.mustEnd(ctx)
	case timedOutByOutage(err):
		return r.overdueEnding()
	case errors.As(err, &app): // for ErrorFenced, finish finds out which execution owns the run
		var detail runs.FailureDetail
		if app.HasDetails() {
			_ = app.Details(&detail) // details of another type have no record
		}
		return ending{outcome: runs.OutcomeError, code: app.Type(), message: app.Message(), detail: detail.Record}
	case errors.As(err, &timedOut) && boundsDeadline(timedOut):
		return r.overdueEnding()
	case errors.As(err, &timedOut):
		return endingFromFailure(timeout)
	default:
		return ending{outcome: runs.OutcomeError, code: runs.CodeInternal, message: "a step failed"}
	}
}

// boundsDeadline reports whether a timeout is one that options set to the earlier deadline of run and
// step.
func boundsDeadline(err *temporal.TimeoutError) bool {
	return err.TimeoutType() == enums.TIMEOUT_TYPE_START_TO_CLOSE || err.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
}

// isOverdue reports whether the run's deadline has passed.
func (r *run) isOverdue(ctx workflow.Context) bool { return r.budget.IsOverdue(workflow.Now(ctx)) }

// isType reports whether err is or wraps an application error of a type.
func isType(err error, errorType string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == errorType
}

// overdueEnding returns how the run ends when an activity has run out of time: with the step's
// timeout if that is earlier than the run's deadline.
func (r *run) overdueEnding() ending {
	if r.deadline().Before(r.budget.Deadline) {
		return endingFromFailure(timeout)
	}
	return r.durationEnding()
}

// durationEnding returns the ending of a run whose deadline has passed.
func (r *run) durationEnding() ending {
	return limitEnding(runs.CodeLimitDuration, "the run reached its limit of %s", r.in.Limits.Duration)
}
