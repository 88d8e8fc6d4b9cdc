// Package commands sends commands to the run of a thread: its workflow takes them as updates, or as
// a cancel.
package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// Sender sends commands to workflows. It is safe for concurrent use.
type Sender struct {
	Find     *lookup.Finder
	Dispatch *dispatch.Dispatcher
}

// Update sends an update to the thread's workflow, and waits for its result.
func (s *Sender) Update(ctx context.Context, thread stream.Thread, name string, arg, answer any) error {
	err := s.Dispatch.Update(ctx, thread, "", name, arg, answer)
	var app *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &app) && app.Type() == runs.ErrorTooMuchSteering:
		return problem.New(http.StatusTooManyRequests, "too_much_steering", "the run has been told as much as it can take")
	case errors.As(err, &gone), errors.As(err, &app):
		return notActive(thread)
	case err != nil:
		return fmt.Errorf("api: %s: %w", name, err)
	}
	return nil
}

// CodeNotActive is the code of the problem that a thread has no active run.
const CodeNotActive = "not_active"

func notActive(t stream.Thread) *problem.Problem {
	return problem.New(http.StatusConflict, CodeNotActive, fmt.Sprintf("no run of the thread %.200q is active", t.ID))
}
