package problem

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream"
)

// Of maps an error to its answer. It is the only place that decides this. An error without a
// meaning for clients is 503: it may be unknown whether something happened, and repeating is safe.
func Of(err error) *Problem {
	var (
		p       *Problem
		decode  *agui.DecodeError
		field   *schedules.FieldError
		tooLong *http.MaxBytesError
		missing *catalog.UnknownError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLong):
		return New(http.StatusRequestEntityTooLarge, "too_large", "the body may have at most "+strconv.FormatInt(tooLong.Limit, 10)+" bytes")
	case errors.As(err, &decode):
		return BadRequest("invalid_input", decode.Pointer, decode.Detail)
	case errors.As(err, &field):
		return BadRequest("invalid_schedule", field.Pointer, field.Detail)
	case errors.Is(err, schedules.ErrUnknown):
		return Unknown("schedule", "") // the pointer has its name
	case errors.Is(err, schedules.ErrChanged):
		return New(http.StatusConflict, "schedule_changed", "somebody else has changed the schedule meanwhile; look at it again")
	case errors.Is(err, stream.ErrInvalidCursor):
		return InvalidCursor(err)
	case errors.Is(err, stream.ErrLogReplaced):
		return New(http.StatusGone, "log_replaced", "the cursor belongs to a log that has been replaced; attach anew")
	case errors.Is(err, stream.ErrGone):
		return New(http.StatusGone, "gone", "the thread that the cursor is of was deleted; attach anew")
	case errors.Is(err, inbox.ErrGone):
		return New(http.StatusGone, "gone", "what came behind the cursor may not be kept any more; list what is pending, and follow from there")
	case errors.As(err, &missing) && missing.Revision == "":
		return Unknown("agent", missing.Agent)
	case missing != nil:
		return New(http.StatusNotFound, "unknown_revision", fmt.Sprintf("the agent %.100q has no revision %.100q", missing.Agent, missing.Revision))
	case errors.Is(err, catalog.ErrMismatch):
		return New(http.StatusPreconditionFailed, "revision_mismatch", "another revision is current than the request expects")
	}
	if p := invalidDefinition(err); p != nil {
		return p
	}
	if p := unauthenticated(err); p != nil {
		return p
	}
	unavailable := New(http.StatusServiceUnavailable, "unavailable", "it is unknown whether this took effect; sending the same again is safe")
	unavailable.RetryAfter = 1
	return unavailable
}
