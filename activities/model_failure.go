package activities

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// modelError is a failed model call. Record is the record with the provider's message; 0 = none.
type modelError struct {
	model  string // provider/model, as in the definition
	record uint64
	err    error
}

func (e *modelError) Error() string { return e.model + ": " + e.err.Error() }
func (e *modelError) Unwrap() error { return e.err }

// ofModel adds the model's name to an error of its provider.
func ofModel(name string, err error) error {
	if _, ok := errors.AsType[*llm.Error](err); ok {
		return &modelError{model: name, err: err}
	}
	return err
}

// failedCall logs why a model call failed. If it is not attempted again, the log keeps the
// provider's message for the run's end.
func (a *Activities) failedCall(ctx context.Context, in runs.ModelCall, attempt *stream.Attempt, err error) error {
	failure, ok := errors.AsType[*llm.Error](err)
	of, _ := errors.AsType[*modelError](err)
	if !ok || of == nil || !ownFault(ctx, err) {
		return err
	}
	info := activity.GetInfo(ctx)
	failures := failuresBefore(ctx) + 1
	provider, model, _ := strings.Cut(of.model, "/")
	attributes := []any{
		"agent", in.Agent, "thread", in.Run.Thread, "run", in.Run.ID, "provider", provider, "model", model, "code", string(failure.Code),
		"attempt", info.Attempt, "failures", fmt.Sprintf("%d of %d", failures, failAttempts),
	}
	for name, value := range map[string]string{"host": failure.Host, "reason": failure.Reason, "hint": failure.Hint, "said": providerMessage(failure)} {
		if value != "" {
			attributes = append(attributes, name, value)
		}
	}
	if failure.Status != 0 {
		attributes = append(attributes, "status", failure.Status)
	}
	logger := activity.GetLogger(ctx)
	if failure.Retryable() && failures < failAttempts {
		logger.Warn("a model call failed and will be attempted again", append(attributes, "next", nextAttempt(info, failure.RetryAfter).String())...)
		return err
	}
	logger.Error("a model call failed for good", attributes...)
	if words := providerMessage(failure); words != "" {
		// Without the record the run ends with the same code, and fewer words.
		record, recordErr := attempt.Fail(ctx, words)
		if recordErr == nil {
			of.record = record
		}
	}
	return err
}

// providerMessage returns the provider's message, as far as Code, Status and Reason do not say the
// same; "" = nothing.
func providerMessage(e *llm.Error) string {
	if e.Reason != "" {
		return ""
	}
	return e.Message
}

// nextAttempt returns the time until Temporal's next attempt.
func nextAttempt(info activity.Info, wish time.Duration) time.Duration {
	if wish > 0 {
		return min(wish, longestRetryAfter)
	}
	p := info.RetryPolicy
	if p == nil {
		return 0
	}
	wait := float64(p.InitialInterval) * math.Pow(p.BackoffCoefficient, float64(info.Attempt-1))
	if longest := float64(p.MaximumInterval); longest > 0 {
		wait = min(wait, longest)
	}
	return time.Duration(wait)
}

// longestRetryAfter bounds the Retry-After of a provider.
const longestRetryAfter = 10 * time.Minute

// maxNamed bounds the names of models and hosts in errors, in bytes.
const maxNamed = 80

// failModel returns the failure of a model call for Temporal, without the provider's message.
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
