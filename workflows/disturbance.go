package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
)

// disturbances are the codes of attempts that ended for no fault of the step.
var disturbances = []string{"worker_lost", "worker_stopped", "log_unavailable"}

// isDisturbed tells whether an activity came to no end in its time because of what happened around it. Temporal tells of its last attempt
// then, and an undisturbed one would have failed with the time.
func isDisturbed(err error) bool {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || !slices.Contains(disturbances, app.Type()) {
		return false
	}
	var ended *temporal.ActivityError
	if errors.As(err, &ended) && ended.RetryState() == enums.RETRY_STATE_TIMEOUT {
		return true
	}
	var timedOut *temporal.TimeoutError
	return errors.As(err, &timedOut) && timedOut.TimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
}

// overdueEnding is the end of what is late: that of the step's time if it has less than the run.
func (r *run) overdueEnding() ending {
	if l := r.activeStep(); l != nil && runs.Earlier(l.Deadline, r.budget.Deadline).Before(r.budget.Deadline) {
		return ending{outcome: runs.OutcomeError, code: timeout.Code, message: timeout.Message}
	}
	return r.durationEnding()
}
