package cli

import (
	"context"
	"errors"
	"net/http"

	"github.com/perdure/perdure/client"
)

// Exit codes of commands. Scripts rely on them.
const (
	exitFailed      = 1   // the run ended with an error, or another failure
	exitUsage       = 2   // the command line or the request is invalid
	exitWaits       = 3   // the run waits for an approver, its client, a time or an event
	exitCancelled   = 4   // the run was cancelled
	exitUnreachable = 5   // the server cannot be reached, or it is unknown whether the request took effect
	exitNotFound    = 6   // no such agent, thread, run or approval
	exitConflict    = 7   // conflict: decided, busy, expired, deleted …
	exitForbidden   = 8   // not authenticated, or not allowed
	exitInterrupted = 130 // Ctrl-C; the run continues
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

// usage returns an error with exitUsage.
func usage(err error) error { return &exitError{exitUsage, err} }

// errInterrupted ends a command after Ctrl-C while the run continues.
var errInterrupted = errors.New("left")

// exitCode returns the exit code of a command that has ended with err.
func exitCode(err error) int {
	var (
		exit        *exitError
		unreachable *client.UnreachableError
		problem     *client.Problem
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &unreachable):
		return exitUnreachable
	case errors.As(err, &problem):
		return problemExitCode(problem)
	}
	return exitFailed
}

// problemExitCode returns the exit code for an error response of the API.
func problemExitCode(p *client.Problem) int {
	switch p.Code {
	case "interrupted", "missing_tool_results":
		return exitWaits
	}
	switch p.Status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return exitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitForbidden
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed, http.StatusTooManyRequests:
		return exitConflict
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return exitUnreachable
	}
	return exitFailed
}
