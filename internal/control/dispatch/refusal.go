package dispatch

import (
	"errors"
	"slices"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/runs"
)

// refusals are the types of errors by which a workflow refuses an offer. What else it may answer
// comes of its closing meanwhile.
var refusals = []string{
	runs.ErrorBusy, runs.ErrorInterrupted, runs.ErrorMissingResults, runs.ErrorRunIDReused, runs.ErrorQueueFull,
}

// Refusal returns the type of the error by which a workflow refuses an offer; "" = err is none.
func Refusal(err error) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && slices.Contains(refusals, app.Type()) {
		return app.Type()
	}
	return ""
}

// BusyWith reports whether a workflow refuses an offer because another run is active, and which.
func BusyWith(err error) (active string, busy bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != runs.ErrorBusy {
		return "", false
	}
	var detail runs.Active
	err = app.Details(&detail)
	return detail.RunID, err == nil
}

// over reports whether an offer came too late: the workflow closed meanwhile.
func over(err error) bool {
	var app *temporal.ApplicationError
	var gone *serviceerror.NotFound
	return errors.As(err, &gone) || errors.As(err, &app) && Refusal(err) == ""
}
