package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
)

// externalFailures are the error types of attempts that failed without a fault of the step: its
// worker died or stopped, or NATS was unavailable.
var externalFailures = []string{"worker_lost", "worker_stopped", "log_unavailable"}

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

// overdueEnding returns how the run ends when an activity has run out of time: with the step's
// timeout if that is earlier than the run's deadline.
func (r *run) overdueEnding() ending {
	if active := r.activeStep(); active != nil && runs.Earlier(active.Deadline, r.budget.Deadline).Before(r.budget.Deadline) {
		return ending{outcome: runs.OutcomeError, code: timeout.Code, message: timeout.Message}
	}
	return r.durationEnding()
}
