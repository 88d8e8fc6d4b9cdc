package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file lists runs whose activities are retried in the index of threads, with the reason. A
// first attempt that succeeds writes nothing. The listing is best effort, so its errors are ignored.

// listingTimeout bounds one change of the index.
const listingTimeout = 2 * time.Second

// errorUnreported is the reason if an attempt has not listed why it failed.
const errorUnreported = "the attempt ended without a report: its worker stopped, or the log was unavailable"

// listed returns an activity that lists its run as retrying while it is retried.
func listed[In interface{ Base() runs.Step }, Out any](a *Activities, do func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		s := in.Base()
		attempt := s.Earlier.Count + int(activity.GetInfo(ctx).Attempt)
		if attempt > 1 {
			a.listEarlierAttempt(ctx, s, attempt-1)
		}
		out, err := do(ctx, in)
		switch {
		case isRetried(err):
			a.listRetry(ctx, s, attempt, errorText(err))
		case attempt > 1:
			listCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listingTimeout)
			defer cancel()
			_ = a.Log.ClearRetrying(listCtx, runOf(s.Run), s.ID)
		}
		return out, err
	}
}

// listEarlierAttempt lists the attempt before this one, unless that has done it: its worker may have
// died.
func (a *Activities) listEarlierAttempt(ctx context.Context, s runs.Step, attempt int) {
	entry, err := a.Log.Entry(ctx, runOf(s.Run).Thread)
	if err != nil || entry == nil || entry.Retrying != nil && entry.Retrying.Step == s.ID && entry.Retrying.Attempt >= attempt {
		return
	}
	a.listRetry(ctx, s, attempt, errorUnreported)
}

// listRetry lists a failed attempt of a step.
func (a *Activities) listRetry(ctx context.Context, s runs.Step, attempt int, reason string) {
	info := activity.GetInfo(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listingTimeout)
	defer cancel()
	_ = a.Log.SetRetrying(ctx, runOf(s.Run), stream.Retrying{
		Step: s.ID, Activity: info.ActivityType.Name, Name: s.Name, Attempt: attempt, Error: reason, Since: info.ScheduledTime,
	})
}

// isRetried reports whether Temporal attempts an activity again after this error. Attempts that end
// because another one has taken over, because their worker stops, or because the log is unavailable,
// do not count: the next one follows at once, or nothing can be listed.
func isRetried(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || app.NonRetryable() {
		return false
	}
	switch app.Type() {
	case runs.ErrorFenced, runs.ErrorWorkerStopped, runs.ErrorLogUnavailable:
		return false
	}
	return true
}

// maxErrorBytes bounds the text of an error in the index.
const maxErrorBytes = 300

// errorText returns the text of an activity's error, which has neither content nor secrets (see
// activityError).
func errorText(err error) string {
	text := err.Error()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		text = app.Message()
	}
	return text[:min(len(text), maxErrorBytes)]
}
