package problem

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/perdure/perdure/stream"
)

// Problem is an error answer (RFC 9457). Clients depend on Status and Code, which are stable; Title
// and Detail are for people. Pointer (RFC 6901) names the wrong member of the request. A Problem is
// an error; a function that returns one creates it, so the caller may change it.
type Problem struct {
	Type    string `json:"type"`
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Detail  string `json:"detail,omitempty"`
	Pointer string `json:"pointer,omitempty"`
	// Parameter is the name of the invalid query parameter; "" = the query is not the cause.
	Parameter string `json:"parameter,omitempty"`
	// Errors are all mistakes in an agent's definition. The problem itself has the first.
	Errors []Mistake `json:"errors,omitempty"`
	// Rule is the policy that denies the request (package policy); only of 403 forbidden.
	Rule string `json:"rule,omitempty"`
	// ActiveRun is the run that keeps the thread busy, or that ended with open interrupts.
	ActiveRun string `json:"activeRun,omitempty"`
	// PendingToolCallIDs are the calls whose results the thread waits for.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
	// ForkPoints are the nearest fork points; only of 422 not_a_fork_point.
	ForkPoints any `json:"forkPoints,omitempty"`
	// Recorded is the decision or the result that stands instead of the request's.
	Recorded any `json:"recorded,omitempty"`
	// Counted tells that the decisions of an input were counted, although the input was refused.
	Counted bool `json:"counted,omitempty"`
	// Quota, Limit and Used tell which quota the tenant has reached; only of 429 quota_exceeded. A
	// share of memory has no Limit.
	Quota string `json:"quota,omitempty"`
	Limit int64  `json:"limit,omitempty"`
	Used  int64  `json:"used,omitempty"`
	// RateLimit and RateLimitPolicy are sent as headers of these names; "" = no header.
	RateLimit, RateLimitPolicy string `json:"-"`
	// RetryAfter is sent as the header Retry-After, in seconds; 0 = no header.
	RetryAfter int `json:"-"`
	// Challenge is sent as the header WWW-Authenticate; "" = no header.
	Challenge string `json:"-"`
}

// Mistake is one of several mistakes in an agent's definition, and its place. Line and Column count
// from 1; 0 = unknown.
type Mistake struct {
	Pointer string `json:"pointer,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Detail  string `json:"detail"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// CodeLegalHold is the code of the problem that a legal hold forbids a deletion.
const CodeLegalHold = "legal_hold"

// CodeFileInfected is the code of the problem that a file has a threat.
const CodeFileInfected = "file_infected"

// New returns a problem with the standard title of its status.
func New(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// BadRequest returns a 400. pointer is the JSON pointer to the invalid member; "" = the whole body.
func BadRequest(code, pointer, detail string) *Problem {
	p := New(http.StatusBadRequest, code, detail)
	p.Pointer = pointer
	return p
}

// InvalidParameter returns the 400 for a query parameter. detail begins with its name.
func InvalidParameter(name, detail string) *Problem {
	p := BadRequest("invalid_input", "", detail)
	p.Parameter = name
	return p
}

// InParameter names the query parameter from which an invalid cursor is. Other errors, and nil, are
// returned unchanged.
func InParameter(name string, err error) error {
	if !errors.Is(err, stream.ErrInvalidCursor) {
		return err
	}
	p := InvalidCursor(err)
	p.Parameter = name
	return p
}

// Unknown returns the 404 unknown_<what> for a thing that does not exist or belongs to another
// tenant. name is the name in the request; "" = detail does not have it.
func Unknown(what, name string) *Problem {
	detail := "there is no such " + what
	if name != "" {
		detail = fmt.Sprintf("there is no %s %.100q", what, name)
	}
	return New(http.StatusNotFound, "unknown_"+what, detail)
}

// NoRun returns the 404 for a run that the thread does not have.
func NoRun(run stream.Run) *Problem {
	return New(http.StatusNotFound, "unknown_run", fmt.Sprintf("the thread %.100q has no run %.100q", run.Thread.ID, stream.ShownRunID(run.ID)))
}

// codeInvalidCursor is the code of the problem that a cursor is not one of the requested list or
// stream.
const codeInvalidCursor = "invalid_cursor"

// InvalidCursor returns the 400 for an error that wraps stream.ErrInvalidCursor. It takes the
// reason from the text of the error, after that of the sentinel.
func InvalidCursor(err error) *Problem {
	detail := "the cursor is not valid for this stream"
	if _, reason, ok := strings.Cut(err.Error(), stream.ErrInvalidCursor.Error()+": "); ok {
		detail += ": " + reason
	}
	return BadRequest(codeInvalidCursor, "", detail)
}

// NoThread returns the 404 for a thread that does not exist or belongs to another tenant.
func NoThread(t stream.Thread) *Problem { return Unknown("thread", t.ID) }

// Within maps an error in a part of a frame to a problem whose pointer begins with part, such as
// "/input". It returns a copy, since the original may be shared. An error that is not about the
// request, which [Of] maps to a 5xx, is returned unchanged: the edge logs it as the cause.
func Within(part string, err error) error {
	p := *Of(err)
	if p.Status >= http.StatusInternalServerError {
		return err
	}
	p.Pointer = part + p.Pointer
	return &p
}
