package dispatch

import (
	"errors"
	"slices"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
)

// refusals are the types of errors by which a workflow refuses an offer. Any other application
// error means that the workflow closed before it handled the offer.
var refusals = []string{
	runs.ErrorBusy, runs.ErrorInterrupted, runs.ErrorMissingResults, runs.ErrorRunIDReused, runs.ErrorQueueFull, runs.ErrorOtherEdit,
}

// Refusal returns the type of the error by which a workflow has refused an offer, one of
// runs.Error…; "" = err is no refusal.
func Refusal(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && slices.Contains(refusals, app.Type()) {
		return app.Type()
	}
	return ""
}

// BusyWith reports whether a workflow has refused an offer because another run is active, and
// returns the ID of that run.
func BusyWith(err error) (active string, busy bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != runs.ErrorBusy {
		return "", false
	}
	var detail runs.ActiveRun
	err = app.Details(&detail)
	return detail.RunID, err == nil
}

// closedBeforeUpdate reports whether the workflow closed before it handled the offer, so that the
// caller must load the thread again.
func closedBeforeUpdate(err error) bool {
	var app *temporal.ApplicationError
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound) || errors.As(err, &app) && Refusal(err) == ""
}
