package cli

import (
	"context"
	"errors"
	"net/http"

	"github.com/perdure/perdure/client"
)

// What commands exit with. Scripts rely on these.
const (
	exitFailed      = 1   // the run ended with an error, or something else went wrong
	exitUsage       = 2   // the command line, or what it sends, is wrong
	exitWaits       = 3   // the run waits for a person or for its client
	exitCancelled   = 4   // the run was cancelled
	exitUnreachable = 5   // the server cannot be reached, or does not say what became of the request
	exitNotFound    = 6   // there is no such thing
	exitConflict    = 7   // it is not as the command expects: decided, busy, expired, gone …
	exitForbidden   = 8   // the caller is not known, or may not
	exitLeft        = 130 // Ctrl-C; the run goes on
)

// exitError ends a command with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

func usage(err error) error { return &exitError{exitUsage, err} }

// errLeft ends a command that was told to stop looking.
var errLeft = errors.New("left")

// codeOf is what a command exits with that ended so.
func codeOf(err error) int {
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
	case errors.Is(err, errLeft), errors.Is(err, context.Canceled):
		return exitLeft
	case errors.As(err, &unreachable):
		return exitUnreachable
	case errors.As(err, &problem):
		return codeOfProblem(problem)
	}
	return exitFailed
}

func codeOfProblem(p *client.Problem) int {
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
