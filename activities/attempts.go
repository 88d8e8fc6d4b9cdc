package activities

import (
	"context"
	"errors"

	"github.com/perdure/perdure/tools"
)

// lastAttempt reports whether a failed call is not to be made again. Only failures of the tool
// count, not outages of the log or deaths of workers.
func lastAttempt(ctx context.Context, spec tools.Spec, err error) bool {
	return ownFault(ctx, err) && failuresBefore(ctx)+1 >= spec.Attempts
}

// finalFailure returns the result of a call that failed in all attempts. The model continues with
// it.
func finalFailure(err error) tools.Result {
	text := callBroken
	if e := (*tools.UnavailableError)(nil); errors.As(err, &e) && e.Text != "" {
		text = e.Text
	}
	result := tools.Failed(text)
	result.Cause = err
	return result
}
