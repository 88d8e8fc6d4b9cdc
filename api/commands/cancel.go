package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/stream"
)

// MaxReasonBytes bounds the reason of a cancel or a decision, which stays in the log.
const MaxReasonBytes = 1000

// CheckReason returns a 400 if the reason of a cancel is too long.
func CheckReason(reason string) error {
	if len(reason) > MaxReasonBytes {
		return problem.BadRequest("invalid_input", "/reason", fmt.Sprintf("may have at most %d bytes", MaxReasonBytes))
	}
	return nil
}

// Cancel requests to cancel the last segment of a run, in the name of the caller. It returns when
// the request is durable and the workflow has been signaled; it does not wait for the end of the
// run. A run that has ended is left unchanged. An unknown run is a 404. It takes at most
// request.ResponseTimeout.
func (s *Sender) Cancel(ctx context.Context, run stream.Run, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, request.ResponseTimeout)
	defer cancel()
	run, err := s.Finder.LastSegment(ctx, run)
	if err == nil {
		err = s.Dispatch.Cancel(ctx, run, stream.Cancel{Reason: reason, By: request.Requester(ctx)})
	}
	if errors.Is(err, dispatch.ErrUnknownRun) {
		return problem.NoRun(run)
	}
	return err
}
