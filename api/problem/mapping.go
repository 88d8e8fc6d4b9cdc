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

// Of maps an error to its answer. It is the only function that decides this. A *Problem anywhere in
// the chain of err is returned as it is. An error without a meaning for clients becomes 503
// unavailable: it may be unknown whether the request took effect, and sending it again is safe,
// unless the handler says otherwise with [NotRepeatable]. err must not be nil.
func Of(err error) *Problem {
	var (
		p          *Problem
		decodeErr  *agui.DecodeError
		fieldErr   *schedules.FieldError
		tooLong    *http.MaxBytesError
		unknownErr *catalog.UnknownError
	)
	switch {
	// The order matters: err may wrap several of these.
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLong):
		return New(http.StatusRequestEntityTooLarge, "too_large", "the body may have at most "+strconv.FormatInt(tooLong.Limit, 10)+" bytes")
	case errors.As(err, &decodeErr):
		return BadRequest("invalid_input", decodeErr.Pointer, decodeErr.Detail)
	case errors.As(err, &fieldErr):
		return BadRequest("invalid_schedule", fieldErr.Pointer, fieldErr.Detail)
	case errors.Is(err, schedules.ErrUnknown):
		return Unknown("schedule", "") // scheduleroutes adds the name
	case errors.Is(err, schedules.ErrChanged):
		return New(http.StatusConflict, "schedule_changed", "the schedule was changed concurrently: read it, and try again")
	case errors.Is(err, stream.ErrInvalidCursor):
		return InvalidCursor(err)
	case errors.Is(err, stream.ErrLogReplaced):
		return New(http.StatusGone, "log_replaced", "the cursor belongs to a replaced log: attach without a cursor")
	case errors.Is(err, stream.ErrUnfinishedPurge):
		return New(http.StatusGone, "gone", "the thread is being deleted: delete it again to complete the deletion, or use another thread")
	case errors.Is(err, stream.ErrGone):
		return New(http.StatusGone, "gone", "the thread of the cursor was deleted: attach without a cursor")
	case errors.Is(err, inbox.ErrGone):
		return New(http.StatusGone, "gone", "events after this cursor may have been removed: list the open approvals, and continue from the new cursor")
	case errors.As(err, &unknownErr) && unknownErr.Revision == "":
		return Unknown("agent", unknownErr.Agent)
	case unknownErr != nil: // errors.As has set unknownErr in the case above
		return New(http.StatusNotFound, "unknown_revision", fmt.Sprintf("the agent %.100q has no revision %.100q", unknownErr.Agent, unknownErr.Revision))
	case errors.Is(err, catalog.ErrTaken):
		return New(http.StatusConflict, "agent_name_taken", "the platform has an agent of this name, which an agent of a tenant cannot replace: choose another name")
	case errors.Is(err, catalog.ErrMismatch):
		return New(http.StatusPreconditionFailed, "revision_mismatch", "the current revision is not the revision that the request expects")
	}
	if p := definitionProblem(err); p != nil {
		return p
	}
	if p := authenticationProblem(err); p != nil {
		return p
	}
	if p := quotaProblem(err); p != nil {
		return p
	}
	// Everything else is a failure of the log or of Temporal, a timeout or a defect, so the outcome
	// is unknown.
	unavailable := New(http.StatusServiceUnavailable, codeUnavailable, unknownOutcome+"sending the same request again is safe")
	unavailable.RetryAfter = 1
	return unavailable
}

// codeUnavailable is the code of the problem that the outcome of a request is unknown, and
// unknownOutcome the beginning of its detail.
const (
	codeUnavailable = "unavailable"
	unknownOutcome  = "the effect of the request is unknown: "
)

// NotRepeatable returns an error of a request that may have a second effect if it is sent again. If
// [Of] maps err to 503 unavailable, the detail of the problem ends with advice instead, and err
// stays the cause for the log. Other errors, and nil, are returned unchanged.
func NotRepeatable(err error, advice string) error {
	if err == nil {
		return nil
	}
	p := *Of(err)
	if p.Code != codeUnavailable {
		return err
	}
	p.Detail = unknownOutcome + advice
	return fmt.Errorf("%w: %w", &p, err)
}
