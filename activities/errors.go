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

// This file maps the errors of activities to Temporal's errors, which decide about further
// attempts.
//
//	error                                      attempts                    counts as a failure
//	───────────────────────────────────────────────────────────────────────────────────────────
//	stream.ErrOver, ErrLogLost, no price, …    none                        not relevant
//	catalog.ErrUnknownAgent                    none                        not relevant
//	errFailedBefore                            none                        not relevant
//	stream.ErrFenced, stream.ErrUnavailable    until Temporal's limits     no
//	*lackingError                              until the grace is over     no
//	the worker stops                           at once                      no
//	*llm.Error CodeProviderBusy                until Temporal's limits      no
//	retryable *llm.Error, *UnavailableError    maxFailures                 yes
//	*remoteError without a connection          maxUnreachable              no
//	other *remoteError (remote_failure.go)     maxFailures, or none        yes
//	anything else                              maxFailures                 yes

// codeAgentUnavailable is the code of a run or step whose agent, or one that its agent names, is not
// published.
const codeAgentUnavailable = "agent_unavailable"

// unpublished returns the message about agents that are not published. err has their names, which
// are from definitions, so they are no content.
func unpublished(err error) string {
	return "an agent that the definition names is not published: " + namesIn(err)
}

// maxFailures bounds how often a step may fail by itself: model providers recover in minutes or
// not at all. Outages of the log and of Temporal, and deaths of workers, do not count; Temporal's
// own limit of attempts (100) bounds them.
const maxFailures = 8

// maxUnreachable is the attempt that is the last one if the server of a remote agent accepts no
// connection: it may be in the middle of a deploy. With Temporal's backoff these are ten minutes.
const maxUnreachable = 24

// isUnreachable reports whether an attempt failed because the server of a remote agent accepts no
// connection.
func isUnreachable(err error) bool {
	failed, ok := errors.AsType[*remoteError](err)
	return ok && failed.code() == runs.ErrorRemoteUnreachable
}

// counts reports whether a failure counts towards maxFailures: one of the step itself, unless the server
// of a remote agent may still come.
func counts(ctx context.Context, err error) bool {
	return ownFault(ctx, err) && !(isUnreachable(err) && attemptOf(ctx) < maxUnreachable)
}

// isLastFailure reports whether the step may not fail again after its n-th failure that counts, with err.
func isLastFailure(err error, n int) bool { return n >= maxFailures || isUnreachable(err) }

// isFinal reports whether no attempt may follow one that fails with err and was not counted yet.
func isFinal(ctx context.Context, err error) bool {
	return counts(ctx, err) && isLastFailure(err, failuresBefore(ctx)+1)
}

// activityError returns the error that an activity returns to Temporal; nil for nil. It counts the
// failure if it is one of the step, and makes the last allowed one final. A
// *temporal.ApplicationError of this package passes unchanged. The text becomes part of the
// history, so it has a code and a status, and nothing that a model, a tool or a server has sent.
// Call it once for each attempt.
func activityError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	isLast := false
	if counts(ctx, err) {
		isLast = countFailure(ctx, err)
	}
	return historyError(ctx, err, isLast)
}

// historyError is activityError without the count: isLast tells that the step may not fail again.
func historyError(ctx context.Context, err error, isLast bool) error {
	var (
		modelFailure *llm.Error
		lacking      *lackingError
		unavailable  *tools.UnavailableError
		remoteRun    *remoteError
	)
	switch {
	// ErrOver wraps ErrFenced, so it comes first.
	case errors.Is(err, stream.ErrOver):
		return temporal.NewNonRetryableApplicationError("another step or execution owns the lane", runs.ErrorFenced, nil)
	case errors.Is(err, errFailedBefore):
		return stepError("the step failed, and its workflow task was repeated", runs.CodeInternal, true)
	case errors.Is(err, stream.ErrFenced):
		return retryableError("another attempt has taken over the step", runs.ErrorFenced)
	case errors.Is(err, stream.ErrLogLost):
		return temporal.NewNonRetryableApplicationError("the log lacks acknowledged records", runs.ErrorLogLost, nil)
	case errors.Is(err, snapshot.ErrConversationChanged):
		return temporal.NewNonRetryableApplicationError("the thread's messages were cut while the run waited to start", "conversation_changed", nil)
	case errors.Is(err, catalog.ErrUnknownRevision):
		return temporal.NewNonRetryableApplicationError("the agent's definition is not published", codeAgentUnavailable, nil)
	case errors.Is(err, catalog.ErrUnknownAgent):
		return temporal.NewNonRetryableApplicationError(unpublished(err), codeAgentUnavailable, nil)
	case errors.Is(err, errNoPrice):
		return temporal.NewNonRetryableApplicationError("costs are limited, and the agent's model has no price", codeNoPrice, nil)
	case errors.Is(err, budget.ErrExceeded):
		return temporal.NewNonRetryableApplicationError("the tenant has used its budget for the day", runs.CodeBudgetExceeded, nil)
	case errors.As(err, &modelFailure):
		modelErr, _ := errors.AsType[*modelError](err)
		return modelCallError(ctx, modelFailure, modelErr, isLast)
	case errors.As(err, &remoteRun):
		return remoteRunError(ctx, remoteRun, isLast)
	case errors.As(err, &lacking):
		return temporal.NewApplicationErrorWithOptions("tools of the agent are not available: "+lacking.what(), "tool_unavailable", temporal.ApplicationErrorOptions{
			NonRetryable: lacking.retry == 0, NextRetryDelay: lacking.retry,
		})
	// A tool may have wrapped an outage of the log in its own error.
	case errors.As(err, &unavailable) && !errors.Is(err, stream.ErrUnavailable):
		return unavailableToolError(unavailable, isLast)
	// The retry delay is short: another worker can take the step over at once.
	case ctx.Err() != nil && (errors.Is(err, worker.ErrWorkerShutdown) || errors.Is(err, context.Canceled)):
		return temporal.NewApplicationErrorWithOptions("the worker stopped", runs.ErrorWorkerStopped, temporal.ApplicationErrorOptions{NextRetryDelay: 10 * time.Millisecond})
	case errors.Is(err, stream.ErrUnavailable):
		return retryableError("the log is unavailable", runs.ErrorLogUnavailable)
	case errors.Is(err, context.DeadlineExceeded):
		return stepError("the step took too long", "timeout", isLast)
	}
	// An error of this package arrives unwrapped. An ApplicationError that a tool has wrapped is
	// foreign: its text may have content.
	if app, ok := err.(*temporal.ApplicationError); ok { //nolint:errorlint // see above
		return app
	}
	return stepError(fmt.Sprintf("a step failed (%T)", rootCause(err)), runs.CodeInternal, isLast)
}

// recoverPanic turns a panic of an activity into a failure of the step, and logs the stack. It is
// deferred. The value of a panic may have content, so it is neither logged nor put into the
// history.
func recoverPanic(ctx context.Context, err *error) {
	if recover() == nil {
		return
	}
	logger(ctx).Error("a step panicked", "stack", string(debug.Stack()))
	*err = stepError("a step panicked", runs.CodeInternal, countFailure(ctx, nil))
}

// ownFault reports whether an attempt failed by the step itself, as opposed to its worker, the log,
// another attempt, the lack of a tool, or a limit of a model provider. Only such failures count towards
// maxFailures and the attempts of a tool.
func ownFault(ctx context.Context, err error) bool {
	workerStopped := ctx.Err() != nil && (errors.Is(err, worker.ErrWorkerShutdown) || errors.Is(err, context.Canceled))
	_, isLacking := errors.AsType[*lackingError](err)
	modelFailure, _ := errors.AsType[*llm.Error](err)
	isBusy := modelFailure != nil && modelFailure.Code == llm.CodeProviderBusy
	return !workerStopped && !isLacking && !isBusy && !errors.Is(err, stream.ErrFenced) && !errors.Is(err, stream.ErrUnavailable)
}

// failuresBefore returns how often earlier attempts of the step have failed by themselves. Attempts
// of one activity pass the number on as the detail of their heartbeats, because Temporal counts all
// attempts alike. A heartbeat that got lost loses a failure, which allows one attempt more.
func failuresBefore(ctx context.Context) int {
	n := earlierAttempts(ctx).Failures
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &n) // without details it stays
	}
	return n
}

// countFailure records one more failure of the step, with err, for the next attempt, and reports whether
// it was the last one allowed. Ends of runs and notifications are never given up, so their failures do
// not count.
func countFailure(ctx context.Context, err error) (last bool) {
	switch activity.GetInfo(ctx).ActivityType.Name {
	case runs.ActivityFinish, runs.ActivityNotify:
		return false
	}
	failures := failuresBefore(ctx) + 1
	activity.RecordHeartbeat(ctx, failures)
	return isLastFailure(err, failures)
}

// retryableError returns an error for Temporal that does not count as a failure of the step. code
// is the type by which workflows recognize it.
func retryableError(message, code string) error {
	return temporal.NewApplicationErrorWithOptions(message, code, temporal.ApplicationErrorOptions{})
}

// stepError returns the error for Temporal of a failure of the step. code is the type by which
// workflows recognize it. isLast tells that the step may not fail again: there is no further
// attempt.
func stepError(message, code string, isLast bool) error {
	return temporal.NewApplicationErrorWithOptions(message, code, temporal.ApplicationErrorOptions{NonRetryable: isLast})
}

// rootCause returns the innermost error of a chain. Its type may be shown where its message may
// not.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// unavailableToolError returns the error for Temporal of a tool whose server is unavailable. The
// delay that the server asked for is bounded, because a step must not sleep for days.
func unavailableToolError(e *tools.UnavailableError, isLast bool) error {
	return temporal.NewApplicationErrorWithOptions("the server of a tool is unavailable", "tool_unavailable", temporal.ApplicationErrorOptions{
		NonRetryable: isLast, NextRetryDelay: min(e.RetryAfter, maxRetryAfter),
	})
}

// errorKind returns the kind of an error for telemetry: a code or a Go type, without the message,
// which may have content. It is "" for nil and for a question of a tool, which is no failure.
func errorKind(err error) string {
	var modelFailure *llm.Error
	var remoteRun *remoteError
	_, isQuestion := errors.AsType[*tools.Raised](err)
	switch {
	case err == nil, isQuestion:
		return ""
	case errors.As(err, &modelFailure):
		return string(modelFailure.Code)
	case errors.As(err, &remoteRun):
		return remoteRun.code()
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return fmt.Sprintf("%T", rootCause(err))
	}
}
