package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// failureTimeout bounds the record of a failure: the next attempt must not wait for it.
const failureTimeout = 2 * time.Second

// reportFailure reports an attempt that fails with err, and returns err. It writes to the log why
// the attempt fails, for the trace of the run, and then reports what the step lacks (reportLacking).
// The record is best effort: without it, the trace shows that the attempt failed, but not why.
func (a *Activities) reportFailure(ctx context.Context, attempt *stream.Attempt, err error) error {
	// A fenced attempt cannot write, and the log may not be available.
	if !errors.Is(err, stream.ErrFenced) && !errors.Is(err, stream.ErrUnavailable) && !errors.Is(err, stream.ErrLogLost) {
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), failureTimeout)
		defer cancel()
		_ = attempt.ReportFailure(writing, failureOf(ctx, err))
	}
	return a.reportLacking(ctx, attempt, err)
}

// failureOf returns the failure of an attempt: what the history gets of the error, with the texts
// that clients and models may read.
func failureOf(ctx context.Context, err error) stream.Failure {
	isLast := isFinal(ctx, err)
	failure := stream.Failure{Final: isLast}
	var pause time.Duration
	if app, ok := errors.AsType[*temporal.ApplicationError](historyError(ctx, err, isLast)); ok {
		failure.Code, failure.Message, failure.Final, pause = app.Type(), app.Message(), app.NonRetryable(), app.NextRetryDelay()
	}
	if modelFailure, ok := errors.AsType[*llm.Error](err); ok {
		failure.Hint, failure.Detail = modelFailure.Hint, providerMessage(modelFailure)
		if modelErr, ok := errors.AsType[*modelError](err); ok {
			failed := failedModel(modelErr, modelFailure)
			failure.Model, failure.Unusable, failure.RetryAfter = failed.Model, failed.Unusable, failed.RetryAfter
		}
	}
	if remoteRun, ok := errors.AsType[*remoteError](err); ok {
		failure.Detail = remoteRun.detail()
	}
	if unavailable, ok := errors.AsType[*tools.UnavailableError](err); ok {
		failure.Detail = unavailable.Text
	}
	if !failure.Final {
		failure.Pause = nextAttempt(activity.GetInfo(ctx), pause)
	}
	return failure
}
