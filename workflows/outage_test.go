package workflows

import (
	"testing"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/temporal"
)

// TestTimedOutByOutage: a timeout of a disturbed activity is distinguished from the activity's own
// failure, in each form that Temporal reports.
func TestTimedOutByOutage(t *testing.T) {
	t.Parallel()
	failed := func(code string, state enums.RetryState) error {
		return temporal.GetDefaultFailureConverter().FailureToError(&failurepb.Failure{
			FailureInfo: &failurepb.Failure_ActivityFailureInfo{ActivityFailureInfo: &failurepb.ActivityFailureInfo{RetryState: state}},
			Cause: &failurepb.Failure{FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: code},
			}},
		})
	}
	timedOut := func(kind enums.TimeoutType, code string) error {
		return temporal.NewTimeoutError(kind, temporal.NewApplicationError("", code))
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no time for another attempt":    {failed("worker_lost", enums.RETRY_STATE_TIMEOUT), true},
		"the log was away":               {failed("log_unavailable", enums.RETRY_STATE_TIMEOUT), true},
		"timed out after a lost attempt": {timedOut(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, "worker_stopped"), true},
		"out of attempts":                {failed("worker_lost", enums.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED), false},
		"a fault of its own":             {failed("rate_limited", enums.RETRY_STATE_TIMEOUT), false},
		"another timeout":                {timedOut(enums.TIMEOUT_TYPE_HEARTBEAT, "worker_lost"), false},
		"only timed out":                 {temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := timedOutByOutage(c.err); got != c.want {
				t.Errorf("timedOutByOutage = %v, want %v", got, c.want)
			}
		})
	}
}
