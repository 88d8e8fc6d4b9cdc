package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// fail maps an error to what Temporal does with it: the one place where that is decided. The message
// goes into the history, so it is in our own words: a code and a status, never what a model, a tool
// or a server said.
func fail(err error) error {
	if err == nil {
		return nil
	}
	var model *llm.Error
	switch {
	case errors.Is(err, stream.ErrFenced):
		return temporal.NewNonRetryableApplicationError("the step is in other hands", workflows.ErrorFenced, nil)
	case errors.Is(err, stream.ErrLogLost):
		return temporal.NewNonRetryableApplicationError("the log lacks acknowledged records", workflows.ErrorLogLost, nil)
	case errors.Is(err, catalog.ErrUnknownRevision):
		return temporal.NewNonRetryableApplicationError("the agent's definition is not published", "agent_unavailable", nil)
	case errors.As(err, &model):
		return failModel(model)
	case errors.Is(err, context.Canceled):
		return temporal.NewApplicationErrorWithOptions("the worker stopped", "worker_stopped", temporal.ApplicationErrorOptions{NextRetryDelay: 10 * time.Millisecond})
	case errors.Is(err, context.DeadlineExceeded):
		return temporal.NewApplicationError("a step took too long", "timeout")
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return err
	}
	return temporal.NewApplicationError(fmt.Sprintf("a step failed (%T)", root(err)), workflows.CodeInternal)
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

// longestRetryAfter bounds what a provider may ask for; the run's duration bounds it as well.
const longestRetryAfter = 10 * time.Minute

func failModel(e *llm.Error) error {
	words := fmt.Sprintf("the model call failed: %s", e.Code)
	if e.Status != 0 {
		words += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	return temporal.NewApplicationErrorWithOptions(words, string(e.Code), temporal.ApplicationErrorOptions{
		NonRetryable:   !e.Retryable(),
		NextRetryDelay: min(e.RetryAfter, longestRetryAfter),
	})
}

// kindOf names an error for telemetry, without its words.
func kindOf(err error) string {
	var model *llm.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &model):
		return string(model.Code)
	case errors.Is(err, context.Canceled):
		return "cancelled"
	default:
		return fmt.Sprintf("%T", root(err))
	}
}
