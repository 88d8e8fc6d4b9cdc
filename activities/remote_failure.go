package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities/relay"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/runs"
)

// This file is about failed runs of remote agents:
//
//	failure                                 never    restart   resume
//	─────────────────────────────────────────────────────────────────────
//	no connection, 429, 503                 again    again     again
//	other 5xx, reset, silence, no end       fails    again     continues
//	the worker dies or stops                fails    again     continues
//	4xx, protocol error, RUN_ERROR, …       fails    fails     fails
//
// "again" makes the run from its beginning, "continues" after the last event that the log has. Without
// such an event, and in a hidden step, whose messages the log does not have, "continues" is "again". An
// attempt that has sent nothing does not count. A step fails at most maxFailures times.
// Attempts without a connection do not count before the attempt maxUnreachable, which is the last one then.

// codeRemoteRunFailed is the code of a run whose remote agent has sent RUN_ERROR.
const codeRemoteRunFailed = "remote_run_failed"

// remoteError is a failed run of a remote agent. err is a *remote.Error or a *relay.RunError.
type remoteError struct {
	agent string
	retry string // agents.Remote.Retry
	err   error
	// record is the record with the remote's own message; 0 = there is none.
	record uint64
}

// Error implements error. The text has no content.
func (e *remoteError) Error() string { return fmt.Sprintf("the agent %s: %v", e.agent, e.err) }

// Unwrap returns the cause.
func (e *remoteError) Unwrap() error { return e.err }

// remoteFailure returns the error of a run that has failed with err: a *remoteError for a failure of
// the remote, and err for one of the log or of the context.
func (t turn) remoteFailure(err error) error {
	_, isCall := errors.AsType[*remote.Error](err)
	_, isRun := errors.AsType[*relay.RunError](err)
	if !isCall && !isRun {
		return err
	}
	return &remoteError{agent: t.in.Agent, retry: t.definition.Remote.Retry, err: err}
}

// maxRemoteMessage bounds the message of a remote's RUN_ERROR, in bytes, as agui/remote bounds that of a
// refusal.
const maxRemoteMessage = 2 << 10

// withShownMessage returns err with the message of the remote's RUN_ERROR as it may be shown: redacted,
// because it may quote the headers, and cut.
func withShownMessage(err error, redactor secrets.Redactor) error {
	if failed, ok := errors.AsType[*relay.RunError](err); ok {
		message := redactor.Text(failed.Message)
		failed.Message = strings.ToValidUTF8(message[:min(len(message), maxRemoteMessage)], "")
	}
	return err
}

// call returns the failure of the request; nil = the remote has sent RUN_ERROR.
func (e *remoteError) call() *remote.Error {
	failure, _ := errors.AsType[*remote.Error](e.err)
	return failure
}

// code returns the code of the failure.
func (e *remoteError) code() string {
	if failure := e.call(); failure != nil {
		return string(failure.Kind)
	}
	return codeRemoteRunFailed
}

// message returns a description without content.
func (e *remoteError) message() string {
	if failure := e.call(); failure != nil {
		return fmt.Sprintf("the agent %s: %s", e.agent, failure.Message)
	}
	if failed, ok := errors.AsType[*relay.RunError](e.err); ok && failed.ShownCode() != "" {
		return fmt.Sprintf("the agent %s has ended its run with the error %s", e.agent, failed.ShownCode())
	}
	return fmt.Sprintf("the agent %s has ended its run with an error", e.agent)
}

// detail returns the remote's own message, which may be content; "" = there is none.
func (e *remoteError) detail() string {
	if failure := e.call(); failure != nil {
		return failure.Excerpt
	}
	if failed, ok := errors.AsType[*relay.RunError](e.err); ok {
		return failed.Message
	}
	return ""
}

// hasNotBegun reports whether a failure of a kind means that the remote has not begun the run.
func hasNotBegun(kind remote.Kind) bool {
	return kind == remote.KindUnreachable || kind == remote.KindUnavailable
}

// isRetryable reports whether the run may be attempted again.
func (e *remoteError) isRetryable() bool {
	failure := e.call()
	if failure == nil {
		return false
	}
	switch failure.Kind {
	case remote.KindUnreachable, remote.KindUnavailable:
		return true
	case remote.KindFailed, remote.KindBroken, remote.KindSilent, remote.KindTruncated:
		return e.retry == agents.RetryRestart || e.retry == agents.RetryResume
	}
	return false
}

// retryAfter returns the pause that the remote has asked for; 0 = none.
func (e *remoteError) retryAfter() time.Duration {
	if failure := e.call(); failure != nil {
		return min(failure.RetryAfter, maxRetryAfter)
	}
	return 0
}

// remoteRunError returns the error for Temporal. isLast tells that the step may not fail again.
func remoteRunError(ctx context.Context, e *remoteError, isLast bool) error {
	message := strings.Builder{}
	message.WriteString(e.message())
	if n := attemptOf(ctx); n > 1 {
		fmt.Fprintf(&message, " (attempt %d)", n)
	}
	options := temporal.ApplicationErrorOptions{NonRetryable: isLast || !e.isRetryable(), NextRetryDelay: e.retryAfter()}
	if e.record != 0 {
		options.Details = []any{runs.FailureDetail{Record: e.record}}
	}
	return temporal.NewApplicationErrorWithOptions(message.String(), e.code(), options)
}

// reportRemoteFailure writes a failed run to the worker's log, and returns err. If no attempt follows,
// the log keeps the remote's own message, as it does for models (reportModelFailure).
func (a *Activities) reportRemoteFailure(ctx context.Context, t turn, err error) error {
	failure, ok := errors.AsType[*remoteError](err)
	if !ok || !ownFault(ctx, err) {
		return err
	}
	failures := failuresBefore(ctx) // activityError counts this failure later
	if counts(ctx, err) {
		failures++
	}
	attributes := []any{"remote", t.in.Agent, "code", failure.code(), "reason", failure.message(), "failures", failures}
	if call := failure.call(); call != nil && call.Status != 0 {
		attributes = append(attributes, "status", call.Status)
	}
	if failure.isRetryable() && !isFinal(ctx, err) {
		logger(ctx).Warn("the run of a remote agent failed and will be attempted again", append(attributes, "next", nextAttempt(activity.GetInfo(ctx), failure.retryAfter()).String())...)
		return err
	}
	logger(ctx).Error("the run of a remote agent failed", attributes...)
	if detail := failure.detail(); detail != "" {
		// If the record cannot be written, the run ends with the same code and a shorter message.
		if record, recordErr := t.attempt.Fail(ctx, detail); recordErr == nil {
			failure.record = record
		}
	}
	return err
}
