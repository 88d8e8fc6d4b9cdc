package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream"
)

// Problem is an error answer (RFC 9457). Code is stable. Pointer (RFC 6901) names the wrong member of the request.
type Problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Detail  string `json:"detail,omitempty"`
	Pointer string `json:"pointer,omitempty"`
	// Errors are all mistakes in an agent's definition. The problem itself has the first.
	Errors []Mistake `json:"errors,omitempty"`
	// ActiveRun is the run that keeps the thread busy.
	ActiveRun string `json:"activeRun,omitempty"`
	// PendingToolCallIDs are the calls whose results the thread waits for.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
	// Recorded is the decision or the result that stands.
	Recorded any `json:"recorded,omitempty"`
	// Counted tells that the decisions of an input were taken, although the input was not.
	Counted bool `json:"counted,omitempty"`
	// RetryAfter is sent as a header, in seconds.
	RetryAfter int `json:"-"`
	// Challenge is sent as the header WWW-Authenticate.
	Challenge string `json:"-"`
}

// Mistake is one of several mistakes in a body, and its place. Line and Column count from 1.
type Mistake struct {
	Pointer string `json:"pointer,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Detail  string `json:"detail"`
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

func problem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

func badRequest(code, pointer, detail string) *Problem {
	p := problem(http.StatusBadRequest, code, detail)
	p.Pointer = pointer
	return p
}

// unknown is the problem of a thing that does not exist, by its name.
func unknown(what, name string) *Problem {
	detail := "there is no such " + what
	if name != "" {
		detail = fmt.Sprintf("there is no %s %.100q", what, name)
	}
	return problem(http.StatusNotFound, "unknown_"+what, detail)
}

func errNoRun(run stream.Run) *Problem {
	return problem(http.StatusNotFound, "unknown_run", fmt.Sprintf("the thread %.100q has no run %.100q", run.Thread.ID, stream.ShownRunID(run.ID)))
}

// errInvalidCursor is the problem with a cursor, and the cursor or the reason if the error has it.
func errInvalidCursor(err error) *Problem {
	detail := "this is not a cursor of this server, or its place is not in what is asked for"
	if _, why, ok := strings.Cut(err.Error(), stream.ErrInvalidCursor.Error()+": "); ok {
		detail += ": " + why
	}
	return badRequest("invalid_cursor", "", detail)
}

// problemOf maps an error to its answer. It is the only place that decides this. An error without a meaning for clients is 503: it may be unknown
// whether something happened, and repeating is safe.
func problemOf(err error) *Problem {
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
		return problem(http.StatusRequestEntityTooLarge, "too_large", "the body may have at most "+strconv.FormatInt(tooLong.Limit, 10)+" bytes")
	case errors.As(err, &decode):
		return badRequest("invalid_input", decode.Pointer, decode.Detail)
	case errors.As(err, &field):
		return badRequest("invalid_schedule", field.Pointer, field.Detail)
	case errors.Is(err, schedules.ErrUnknown):
		return unknown("schedule", "") // the pointer has its name
	case errors.Is(err, schedules.ErrChanged):
		return problem(http.StatusConflict, "schedule_changed", "somebody else has changed the schedule meanwhile; look at it again")
	case errors.Is(err, stream.ErrInvalidCursor):
		return errInvalidCursor(err)
	case errors.Is(err, stream.ErrLogReplaced):
		return problem(http.StatusGone, "log_replaced", "the cursor belongs to a log that has been replaced; attach anew")
	case errors.Is(err, stream.ErrGone):
		return problem(http.StatusGone, "gone", "the thread that the cursor is of was deleted; attach anew")
	case errors.Is(err, inbox.ErrGone):
		return problem(http.StatusGone, "gone", "what came behind the cursor may not be kept any more; list what is pending, and follow from there")
	case errors.As(err, &missing) && missing.Revision == "":
		return unknown("agent", missing.Agent)
	case missing != nil:
		return problem(http.StatusNotFound, "unknown_revision", fmt.Sprintf("the agent %.100q has no revision %.100q", missing.Agent, missing.Revision))
	case errors.Is(err, catalog.ErrMismatch):
		return problem(http.StatusPreconditionFailed, "revision_mismatch", "another revision is current than the request expects")
	}
	if p := invalidAgent(err); p != nil {
		return p
	}
	if p := unauthenticated(err); p != nil {
		return p
	}
	unavailable := problem(http.StatusServiceUnavailable, "unavailable", "it is unknown whether this took effect; sending the same again is safe")
	unavailable.RetryAfter = 1
	return unavailable
}

// refuse answers with a problem. The cause of a 503 is logged, once.
func (s *Server) refuse(c *gin.Context, err error) {
	p := problemOf(err)
	if errors.Is(err, schedules.ErrUnknown) {
		p = unknown("schedule", segment(c, "schedule"))
	}
	if p.Status >= http.StatusInternalServerError && p.Code != codeFull && c.Request.Context().Err() == nil {
		s.logger.ErrorContext(c.Request.Context(), "request failed", "method", c.Request.Method, "route", c.FullPath(), "error", err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		body = []byte(`{"type":"about:blank","status":500,"code":"internal"}`)
	}
	if p.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	if p.Challenge != "" {
		c.Header("WWW-Authenticate", p.Challenge)
	}
	c.Abort()
	c.Data(p.Status, "application/problem+json", body)
}
