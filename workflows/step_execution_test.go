package workflows_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
)

// retryAfter returns a retryable error that asks for a pause.
func retryAfter(errorType string, pause time.Duration) error {
	return temporal.NewApplicationErrorWithOptions("not now", errorType, temporal.ApplicationErrorOptions{NextRetryDelay: pause})
}

// TestFirstModelAttempt: what follows the first attempt of a model call, by how that ended.
func TestFirstModelAttempt(t *testing.T) {
	t.Parallel()
	elsewhere := runs.ModelAnswer{LocalAnswer: runs.LocalAnswer{ContinuesOn: runs.ProcessQueuePrefix + "other"}}
	for name, c := range map[string]struct {
		answers []runs.ModelAnswer // of the attempts before the last, which has an answer
		errs    []error
		earlier runs.EarlierAttempts // that the last attempt learns of
		pause   time.Duration        // at least, in all
	}{
		"an answer":                 {},
		"no room in the task":       {answers: []runs.ModelAnswer{{LocalAnswer: runs.LocalAnswer{ContinuesOn: runs.TaskQueue}}}, errs: []error{nil}},
		"it leaves the task":        {answers: []runs.ModelAnswer{elsewhere}, errs: []error{nil}},
		"it fails in the task":      {answers: make([]runs.ModelAnswer, 1), errs: []error{retryAfter("unavailable", 0)}, earlier: runs.EarlierAttempts{Count: 1, Failures: 1}, pause: time.Second},
		"it fails for a while":      {answers: make([]runs.ModelAnswer, 1), errs: []error{retryAfter("rate_limited", time.Minute)}, earlier: runs.EarlierAttempts{Count: 1, Failures: 1}, pause: time.Minute},
		"it fails after the task":   {answers: []runs.ModelAnswer{elsewhere, {}}, errs: []error{nil, retryAfter("unavailable", 0)}, earlier: runs.EarlierAttempts{Count: 1, Failures: 1}, pause: time.Second},
		"its worker dies":           {answers: []runs.ModelAnswer{elsewhere, {}}, errs: []error{nil, retryAfter(runs.ErrorWorkerLost, time.Millisecond)}, earlier: runs.EarlierAttempts{Count: 1}},
		"nobody claims it":          {answers: []runs.ModelAnswer{elsewhere, {}}, errs: []error{nil, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)}, earlier: runs.EarlierAttempts{Count: 1}},
		"its worker is not heard":   {answers: []runs.ModelAnswer{elsewhere, {}}, errs: []error{nil, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_HEARTBEAT, nil)}, earlier: runs.EarlierAttempts{Count: 1}},
		"the log is not available":  {answers: make([]runs.ModelAnswer, 1), errs: []error{retryAfter(runs.ErrorLogUnavailable, 0)}, earlier: runs.EarlierAttempts{Count: 1}, pause: time.Second},
		"another attempt took over": {answers: make([]runs.ModelAnswer, 1), errs: []error{retryAfter(runs.ErrorFenced, 0)}, earlier: runs.EarlierAttempts{Count: 1}, pause: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture, calls := setup(t), 0
			fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
				if calls++; calls <= len(c.errs) {
					return c.answers[calls-1], c.errs[calls-1]
				}
				return modelAnswer(10), nil
			}
			began := fixture.env.Now()
			result, _ := fixture.run(input)
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			mustEqual(t, "number of attempts", len(fixture.modelCalls), len(c.errs)+1)
			wantEqual(t, "earlier attempts", fixture.modelCalls[len(c.errs)].Earlier, c.earlier)
			if took := fixture.env.Now().Sub(began); took < c.pause || c.pause == 0 && took >= time.Second {
				t.Errorf("the run took %s, want %s for pauses", took, c.pause)
			}
		})
	}
}

// TestNoModelAttemptAfterDeadline: an attempt whose pause would outlast the run is not made. The run
// ends with the error of the last attempt, or with its limit if that attempt did not fail by itself.
func TestNoModelAttemptAfterDeadline(t *testing.T) {
	t.Parallel()
	for errorType, want := range map[string]string{"rate_limited": "rate_limited", runs.ErrorLogUnavailable: runs.CodeLimitDuration} {
		fixture := setup(t)
		fixture.model = func(runs.ModelCall) (runs.ModelAnswer, error) {
			return runs.ModelAnswer{}, retryAfter(errorType, 2*time.Hour)
		}
		result, _ := fixture.run(input)
		wantEqual(t, errorType+": code", result.Code, want)
		wantEqual(t, errorType+": number of attempts", len(fixture.modelCalls), 1)
	}
}

// TestCallsThatAwaitLanes: calls for which there are not enough lanes are not made within the workflow
// task. A lost task may have given the free lanes to other calls than the repeated one, which would
// then not find that a call was made.
func TestCallsThatAwaitLanes(t *testing.T) {
	t.Parallel()
	for count, within := range map[int]bool{runs.MaxLanes: true, runs.MaxLanes + 1: false} {
		fixture := setup(t)
		fixture.model = func(in runs.ModelCall) (runs.ModelAnswer, error) {
			if in.Turn > 1 {
				return modelAnswer(30), nil
			}
			var ids []string
			for i := range count {
				ids = append(ids, fmt.Sprint("c", i))
			}
			return modelAnswer(10, ids...), nil
		}
		var made atomic.Int32
		fixture.env.RegisterActivityWithOptions(func(ctx context.Context, in runs.ToolCall) (runs.ToolAnswer, error) {
			made.Add(1)
			if is := activity.GetInfo(ctx).IsLocalActivity; is != within {
				t.Errorf("call %s of %d: within the workflow task = %v, want %v", in.CallID, count, is, within)
			}
			return runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: 11, Seq: 20}, nil
		}, activity.RegisterOptions{Name: runs.ActivityCallTool, DisableAlreadyRegisteredCheck: true})
		in := input
		in.Limits.ParallelTools = 64
		fixture.run(in)
		wantEqual(t, "number of calls", int(made.Load()), count)
	}
}
