// Package commands sends the commands of clients to the run of a thread: updates to its workflow,
// such as steering, and requests to cancel. Handlers of HTTP routes and of WebSocket frames share
// it, so a command has the same effect and the same errors over both.
package commands

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// Sender sends commands to the workflows of threads. It has no state. It is safe for concurrent
// use.
type Sender struct {
	Finder   *lookup.Finder
	Dispatch *dispatch.Dispatcher
	// Files has the files of threads. nil = there are none.
	Files *attachments.Attachments
}

// Update sends an update to the thread's workflow, and blocks until the workflow has completed it.
// It decodes the result into answer. The workflow's refusals become problems: 429
// too_much_steering, and 409 not_active for all others and for a thread without a workflow. After
// another error, such as a timeout, it is unknown whether the update took effect; all updates of
// this project may be sent again.
func (s *Sender) Update(ctx context.Context, thread stream.Thread, name string, arg, answer any) error {
	err := s.Dispatch.Update(ctx, thread, "", name, arg, answer)
	var refusal *temporal.ApplicationError
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &refusal) && refusal.Type() == runs.ErrorTooMuchSteering:
		return problem.New(http.StatusTooManyRequests, codeTooMuchSteering, "the run has reached its limit of steering messages")
	// A workflow that is about to close refuses updates too: to the client its run has ended.
	case errors.As(err, &notFound), errors.As(err, &refusal):
		return errNotActive(thread)
	case err != nil:
		return fmt.Errorf("api: %s: %w", name, err)
	}
	return nil
}

// Withdraw removes the content of a proposal that a workflow has refused. A failure leaves content that
// nobody needs, so it is only logged.
func (s *Sender) Withdraw(ctx context.Context, p stream.Proposal) {
	if err := s.Finder.Log.Withdraw(ctx, p); err != nil {
		s.Finder.Logger.WarnContext(ctx, "the content of a refused input stays in the log", "error", err)
	}
}

// codeTooMuchSteering is the code of the problem that a run has reached its limit of steering.
const codeTooMuchSteering = "too_much_steering"

// CodeNotActive is the code of the problem that a thread has no active run. Callers compare it to
// handle a run that ends concurrently.
const CodeNotActive = "not_active"

// errNotActive returns that problem, a 409.
func errNotActive(t stream.Thread) *problem.Problem {
	return problem.New(http.StatusConflict, CodeNotActive, fmt.Sprintf("no run of the thread %.200q is active", t.ID))
}
