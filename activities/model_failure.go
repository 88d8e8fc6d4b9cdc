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
}

func (e *modelError) Error() string { return e.model + ": " + e.err.Error() }
func (e *modelError) Unwrap() error { return e.err }

// ofModel adds the model's name to an error of its provider. It returns other errors, and nil,
// unchanged.
func ofModel(name string, err error) error {
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return &modelError{model: name, err: err}
	}
	return err
}

// failedCall writes a failed model call to the worker's log, and returns err. If Temporal makes no
// further attempt, the log keeps the provider's message: RUN_ERROR shows it, and no history gets
// it. Errors that are not a provider's, or not a failure of the step, are returned unchanged.
func (a *Activities) failedCall(ctx context.Context, attempt *stream.Attempt, err error) error {
	failure, ok := errors.AsType[*llm.Error](err)
	of, _ := errors.AsType[*modelError](err)
	if !ok || of == nil || !ownFault(ctx, err) {
		return err
	}
	info := activity.GetInfo(ctx)
	// This failure is counted later, by fail.
	failures := failuresBefore(ctx) + 1
	provider, model, _ := strings.Cut(of.model, "/")
	counted := strconv.Itoa(failures)
	if failure.Retryable() { // the bound does not matter to a failure that is never attempted again
		counted += fmt.Sprintf(" of %d", failAttempts)
	}
	attributes := []any{"provider", provider, "model", model, "code", string(failure.Code), "failures", counted}
	for name, value := range map[string]string{"host": failure.Host, "reason": failure.Reason, "hint": failure.Hint, "said": providerMessage(failure)} {
		if value != "" {
			attributes = append(attributes, name, value)
		}
	}
	if failure.Status != 0 {
		attributes = append(attributes, "status", failure.Status)
	}
	logger := logger(ctx)
	if failure.Retryable() && failures < failAttempts {
		logger.Warn("a model call failed and will be attempted again", append(attributes, "next", nextAttempt(info, failure.RetryAfter).String())...)
		return err
	}
	logger.Error("a model call failed and will not be attempted again", attributes...)
	if words := providerMessage(failure); words != "" {
		// This ends the attempt. If the record cannot be written, the run ends with the same code
		// and a shorter message.
		record, recordErr := attempt.Fail(ctx, words)
		if recordErr == nil {
			of.record = record
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

// nextAttempt returns the pause before Temporal's next attempt, for the worker's log. wish is the
// provider's Retry-After; 0 = the activity's retry policy decides.
func nextAttempt(info activity.Info, wish time.Duration) time.Duration {
	if wish > 0 {
		return min(wish, longestRetryAfter)
	}
	p := info.RetryPolicy
	if p == nil {
		return 0
	}
	// Temporal's backoff: InitialInterval · BackoffCoefficient^(attempt-1), up to MaximumInterval.
	wait := float64(p.InitialInterval) * math.Pow(p.BackoffCoefficient, float64(info.Attempt-1))
	if longest := float64(p.MaximumInterval); longest > 0 {
		wait = min(wait, longest)
	}
	return time.Duration(wait)
}

// longestRetryAfter bounds the pause that a provider or a tool's server may ask for.
const longestRetryAfter = 10 * time.Minute

// maxNamed bounds the name of a model, and of a host, in an error, in bytes.
const maxNamed = 80

// failModel returns the error for Temporal of a failed model call. last tells that the step may not
// fail again; the error is then final even if its code is retryable. The text has no word of the
// provider's message; of refers to the record that has it, and may be nil.
func failModel(ctx context.Context, e *llm.Error, of *modelError, last bool) error {
	var words strings.Builder
	fmt.Fprintf(&words, "the model call failed: %s", e.Code)
	if e.Status != 0 {
		fmt.Fprintf(&words, " (HTTP %d)", e.Status)
	}
	if of != nil {
		fmt.Fprintf(&words, ": %.*s", maxNamed, of.model)
	}
	if e.Host != "" {
		fmt.Fprintf(&words, " at %.*s", maxNamed, e.Host)
	}
	if e.Reason != "" {
		fmt.Fprintf(&words, ": %s", e.Reason)
	}
	if e.Hint != "" {
		fmt.Fprintf(&words, "; %s", e.Hint)
	}
	if n := activity.GetInfo(ctx).Attempt; n > 1 {
		fmt.Fprintf(&words, " (attempt %d)", n)
	}
	options := temporal.ApplicationErrorOptions{
		NonRetryable:   last || !e.Retryable(),
		NextRetryDelay: min(e.RetryAfter, longestRetryAfter),
	}
	if of != nil && of.record != 0 {
		options.Details = []any{runs.FailureDetail{Record: of.record}}
	}
	return temporal.NewApplicationErrorWithOptions(words.String(), string(e.Code), options)
}
