package activities

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file is about failed model calls: what operators find in the worker's log, what the run's
// history gets, and what the log keeps for the run's last event.

// modelError is a failed model call, with the name of its model. The activity's error has the code
// and the status; record is the record with the provider's message, 0 = there is none.
type modelError struct {
	// model is the model as in the definition, with its provider.
	model  string
	record uint64
	err    error
	// next is the model that the next attempt calls, after pause. "" = the attempt calls the same
	// model, if the error is retryable.
	next  string
	pause time.Duration
}

// isRepeated reports whether Temporal attempts a failed call again, unless the step has failed too
// often. modelErr may be nil.
func isRepeated(failure *llm.Error, modelErr *modelError) bool {
	return failure.Retryable() || modelErr != nil && modelErr.next != ""
}

func (e *modelError) Error() string { return e.model + ": " + e.err.Error() }
func (e *modelError) Unwrap() error { return e.err }

// withModelName adds the model's name to an error of its provider. It returns other errors, and
// nil, unchanged.
func withModelName(name string, err error) error {
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return &modelError{model: name, err: err}
	}
	return err
}

// reportModelFailure writes a failed model call to the worker's log, and returns err. If Temporal
// makes no further attempt, the log keeps the provider's message: RUN_ERROR shows it, and no
// history gets it. Errors that are not a provider's, or not a failure of the step, are returned
// unchanged.
func (a *Activities) reportModelFailure(ctx context.Context, attempt *stream.Attempt, err error) error {
	failure, ok := errors.AsType[*llm.Error](err)
	modelErr, _ := errors.AsType[*modelError](err)
	if !ok || modelErr == nil || !ownFault(ctx, err) {
		return err
	}
	info := activity.GetInfo(ctx)
	// This failure is counted later, by activityError.
	failures := failuresBefore(ctx) + 1
	provider, model, _ := strings.Cut(modelErr.model, "/")
	failureCount := strconv.Itoa(failures)
	if isRepeated(failure, modelErr) { // the bound does not matter to a failure that is never attempted again
		failureCount += fmt.Sprintf(" of %d", maxFailures)
	}
	attributes := []any{"provider", provider, "model", model, "code", string(failure.Code), "failures", failureCount}
	for _, a := range [][2]string{{"host", failure.Host}, {"reason", failure.Reason}, {"hint", failure.Hint}, {"message", providerMessage(failure)}} {
		if a[1] != "" {
			attributes = append(attributes, a[0], a[1])
		}
	}
	if failure.Status != 0 {
		attributes = append(attributes, "status", failure.Status)
	}
	logger := logger(ctx)
	if isRepeated(failure, modelErr) && failures < maxFailures {
		pause := failure.RetryAfter
		if modelErr.next != "" {
			pause, attributes = modelErr.pause, append(attributes, "nextModel", modelErr.next)
		}
		logger.Warn("a model call failed and will be attempted again", append(attributes, "next", nextAttempt(info, pause).String())...)
		return err
	}
	logger.Error("a model call failed and will not be attempted again", attributes...)
	if message := providerMessage(failure); message != "" {
		// This ends the attempt. If the record cannot be written, the run ends with the same code
		// and a shorter message.
		record, recordErr := attempt.Fail(ctx, message)
		if recordErr == nil {
			modelErr.record = record
		}
	}
	return err
}

// providerMessage returns the provider's own message; "" = Code, Status and Reason say it all. It
// may have content, so it goes to the worker's log and to the log, but not to a history.
func providerMessage(e *llm.Error) string {
	if e.Reason != "" {
		return ""
	}
	return e.Message
}

// nextAttempt returns the pause before Temporal's next attempt, for the worker's log. retryAfter is
// the provider's Retry-After; 0 = the activity's retry policy decides.
func nextAttempt(info activity.Info, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return min(retryAfter, maxRetryAfter)
	}
	policy := info.RetryPolicy
	if policy == nil {
		return 0
	}
	// Temporal's backoff: InitialInterval · BackoffCoefficient^(attempt-1), up to MaximumInterval.
	pause := float64(policy.InitialInterval) * math.Pow(policy.BackoffCoefficient, float64(info.Attempt-1))
	if longest := float64(policy.MaximumInterval); longest > 0 {
		pause = min(pause, longest)
	}
	return time.Duration(pause)
}

// maxRetryAfter bounds the pause that a provider or a tool's server may ask for.
const maxRetryAfter = 10 * time.Minute

// maxNameBytes bounds the name of a model, and of a host, in an error, in bytes.
const maxNameBytes = 80

// modelCallError returns the error for Temporal of a failed model call. isLast tells that the step
// may not fail again; the error is then final even if its code is retryable. The text has nothing
// of the provider's message; modelErr refers to the record that has it, and may be nil.
func modelCallError(ctx context.Context, e *llm.Error, modelErr *modelError, isLast bool) error {
	var message strings.Builder
	fmt.Fprintf(&message, "the model call failed: %s", e.Code)
	if e.Status != 0 {
		fmt.Fprintf(&message, " (HTTP %d)", e.Status)
	}
	if modelErr != nil {
		fmt.Fprintf(&message, ": %.*s", maxNameBytes, modelErr.model)
	}
	if e.Host != "" {
		fmt.Fprintf(&message, " at %.*s", maxNameBytes, e.Host)
	}
	if e.Reason != "" {
		fmt.Fprintf(&message, ": %s", e.Reason)
	}
	if e.Hint != "" {
		fmt.Fprintf(&message, "; %s", e.Hint)
	}
	if n := attemptOf(ctx); n > 1 {
		fmt.Fprintf(&message, " (attempt %d)", n)
	}
	options := temporal.ApplicationErrorOptions{
		NonRetryable:   isLast || !isRepeated(e, modelErr),
		NextRetryDelay: min(e.RetryAfter, maxRetryAfter),
	}
	if modelErr != nil && modelErr.next != "" {
		options.NextRetryDelay = modelErr.pause
		if !isLast {
			fmt.Fprintf(&message, "; %.*s follows", maxNameBytes, modelErr.next)
		}
	}
	if modelErr != nil && modelErr.record != 0 {
		options.Details = []any{runs.FailureDetail{Record: modelErr.record}}
	}
	return temporal.NewApplicationErrorWithOptions(message.String(), string(e.Code), options)
}
