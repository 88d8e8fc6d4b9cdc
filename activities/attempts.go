package activities

import (
	"context"
	"errors"

	"github.com/perdure/perdure/tools"
)

// lastAttempt tells whether a call that came to no end is not to be made again. Only what the tool
// itself fails by counts, not what happens to the log or to this worker.
func lastAttempt(ctx context.Context, spec tools.Spec, err error) bool {
	return ownFault(ctx, err) && failuresBefore(ctx)+1 >= spec.Attempts
}

// lastWords is the result of a call that came to no end in all of its attempts. The model goes on
// with it: a run does not end because a tool is down.
func lastWords(err error) tools.Result {
	text := callBroken
	if e := (*tools.UnavailableError)(nil); errors.As(err, &e) && e.Text != "" {
		text = e.Text
	}
	result := tools.Failed(text)
	result.Cause = err
	return result
}
