package activities

import (
	"context"
	"errors"

	"github.com/perdure/perdure/tools"
)

// This file decides whether a failed tool call is attempted again.

// isLastAttempt reports whether a call that failed with err must not be attempted again, because
// the tool's attempts (Spec.Attempts) are used up. Only failures of the tool count, not outages of
// the log or deaths of workers. The result of the call is then final.
func isLastAttempt(ctx context.Context, spec tools.Spec, err error) bool {
	return ownFault(ctx, err) && failuresBefore(ctx)+1 >= spec.Attempts
}

// finalResult returns the result of a call whose attempts all failed: the text that the tool has
// for the model, or a general one. The run continues with it.
func finalResult(err error) tools.Result {
	text := callBroken
	if e := (*tools.UnavailableError)(nil); errors.As(err, &e) && e.Text != "" {
		text = e.Text
	}
	result := tools.Failed(text)
	result.Cause = err
	return result
}
