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
	"github.com/perdure/perdure/internal/budget"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// failAttempts bounds how often a step may fail by itself: model providers recover in minutes or not at
// all. That the log or Temporal is away, or a worker goes, is not the step's fault and does not count.
const failAttempts = 8

// fail maps an error to what Temporal does with it: the one place where that is decided. The message
// goes into the history, so it is in our own words: a code and a status, never what a model, a tool
// or a server said.
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
	// Only an error of this package comes unwrapped; what a tool may have made is as foreign as others.
	if app, ok := err.(*temporal.ApplicationError); ok { //nolint:errorlint // see above
		return app
	}
	return failure(fmt.Sprintf("a step failed (%T)", root(err)), runs.CodeInternal, last)
}

// contain turns a panic into a failure, for defer: what panics may hold content, which Temporal would
// put into the history.
func contain(ctx context.Context, err *error) {
	if recover() == nil {
		return
	}
	logger(ctx).Error("a step panicked", "stack", string(debug.Stack()))
	*err = failure("a step panicked", runs.CodeInternal, countFailure(ctx))
}

// ownFault tells whether an attempt failed by the step itself, and not by what happened around it.
func ownFault(ctx context.Context, err error) bool {
	stopped := ctx.Err() != nil && (errors.Is(err, worker.ErrWorkerShutdown) || errors.Is(err, context.Canceled))
	_, lacking := errors.AsType[*lackingError](err)
	return !stopped && !lacking && !errors.Is(err, stream.ErrFenced) && !errors.Is(err, stream.ErrUnavailable)
}

// failuresBefore is how often the step has failed by itself. The attempts hand it on in their
// heartbeats: Temporal counts attempts, whatever ended them.
func failuresBefore(ctx context.Context) (n int) {
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &n) // an attempt of an older version has none: 0
	}
	return n
}

// countFailure adds one to the failures of the step and tells whether it was the last that it may
// have. Finishing a run is never given up, since nobody else would end it, nor is telling people that it waits
// for them.
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

// root is the innermost error: its type says more than its words may.
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

// kindOf names an error for telemetry, without its words.
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
