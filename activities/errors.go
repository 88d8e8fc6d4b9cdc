package activities

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// failAttempts bounds how often a step may fail by itself: model providers recover in minutes or
// not at all. Outages of the log and of Temporal, and deaths of workers, do not count.
const failAttempts = 8

// fail maps an error to what Temporal does with it. It is the only place that decides this. The
// message becomes part of the history, so it has a code and a status, and nothing that a model, a
// tool or a server said.
func fail(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	last := false
	if ownFault(ctx, err) {
		last = countFailure(ctx)
	}
	var (
		model       *llm.Error
		lacking     *lackingError
		unavailable *tools.UnavailableError
	)
	switch {
	case errors.Is(err, stream.ErrOver):
		return temporal.NewNonRetryableApplicationError("the step is in other hands", runs.ErrorFenced, nil)
	case errors.Is(err, stream.ErrFenced):
		return failure("another attempt has taken the step over", runs.ErrorFenced, false)
	case errors.Is(err, stream.ErrLogLost):
		return temporal.NewNonRetryableApplicationError("the log lacks acknowledged records", runs.ErrorLogLost, nil)
	case errors.Is(err, snapshot.ErrConversationChanged):
		return temporal.NewNonRetryableApplicationError("the thread's conversation was cut while the run waited to start", "conversation_changed", nil)
	case errors.Is(err, catalog.ErrUnknownRevision):
		return temporal.NewNonRetryableApplicationError("the agent's definition is not published", "agent_unavailable", nil)
	case errors.Is(err, errNoPrice):
		return temporal.NewNonRetryableApplicationError("what models cost is limited, and the agent's has no price", codeNoPrice, nil)
	case errors.Is(err, budget.ErrExceeded):
		return temporal.NewNonRetryableApplicationError("the tenant has used its budget of the day", runs.CodeBudgetExceeded, nil)
	case errors.As(err, &model):
		of, _ := errors.AsType[*modelError](err)
		return failModel(ctx, model, of, last)
	case errors.As(err, &lacking):
		return temporal.NewApplicationErrorWithOptions("the agent needs what is not available: "+lacking.what(), "tool_unavailable", temporal.ApplicationErrorOptions{
			NonRetryable: lacking.retry == 0, NextRetryDelay: lacking.retry,
		})
	case errors.As(err, &unavailable) && !errors.Is(err, stream.ErrUnavailable):
		return failTool(unavailable, last)
	case ctx.Err() != nil && (errors.Is(err, worker.ErrWorkerShutdown) || errors.Is(err, context.Canceled)):
		return temporal.NewApplicationErrorWithOptions("the worker stopped", "worker_stopped", temporal.ApplicationErrorOptions{NextRetryDelay: 10 * time.Millisecond})
	case errors.Is(err, stream.ErrUnavailable):
		return failure("the log is out of reach", "log_unavailable", false)
	case errors.Is(err, context.DeadlineExceeded):
		return failure("the step took too long", "timeout", last)
	}
	// Only an error of this package comes unwrapped. One that a tool made is foreign.
	if app, ok := err.(*temporal.ApplicationError); ok { //nolint:errorlint // see above
		return app
	}
	return failure(fmt.Sprintf("a step failed (%T)", root(err)), runs.CodeInternal, last)
}

// contain turns a panic into a failure, for defer. The value of a panic may have content, which
// must not get into the history.
func contain(ctx context.Context, err *error) {
	if recover() == nil {
		return
	}
	logger(ctx).Error("a step panicked", "stack", string(debug.Stack()))
	*err = failure("a step panicked", runs.CodeInternal, countFailure(ctx))
}

// ownFault reports whether an attempt failed by the step itself.
func ownFault(ctx context.Context, err error) bool {
	stopped := ctx.Err() != nil && (errors.Is(err, worker.ErrWorkerShutdown) || errors.Is(err, context.Canceled))
	_, lacking := errors.AsType[*lackingError](err)
	return !stopped && !lacking && !errors.Is(err, stream.ErrFenced) && !errors.Is(err, stream.ErrUnavailable)
}

// failuresBefore returns how often the step has failed by itself. Attempts pass it on in
// heartbeats, because Temporal counts all attempts.
func failuresBefore(ctx context.Context) (n int) {
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &n) // without details it is 0
	}
	return n
}

// countFailure adds a failure of the step, and reports whether it was the last one allowed.
// Finishing a run and notifying people are never given up.
func countFailure(ctx context.Context) (last bool) {
	switch activity.GetInfo(ctx).ActivityType.Name {
	case runs.ActivityFinish, runs.ActivityNotify:
		return false
	}
	failures := failuresBefore(ctx) + 1
	activity.RecordHeartbeat(ctx, failures)
	return failures >= failAttempts
}

func failure(words, code string, final bool) error {
	return temporal.NewApplicationErrorWithOptions(words, code, temporal.ApplicationErrorOptions{NonRetryable: final})
}

// root returns the innermost error: its type tells more than its message may.
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

func failTool(e *tools.UnavailableError, last bool) error {
	return temporal.NewApplicationErrorWithOptions("what a tool reaches for is not available", "tool_unavailable", temporal.ApplicationErrorOptions{
		NonRetryable: last, NextRetryDelay: min(e.RetryAfter, longestRetryAfter),
	})
}

// kindOf returns the name of an error for telemetry, without its message.
func kindOf(err error) string {
	var model *llm.Error
	_, asks := errors.AsType[*tools.Raised](err)
	switch {
	case err == nil, asks:
		return ""
	case errors.As(err, &model):
		return string(model.Code)
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return fmt.Sprintf("%T", root(err))
	}
}
