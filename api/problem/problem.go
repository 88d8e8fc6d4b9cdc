package problem

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/perdure/perdure/stream"
)

// Problem is an error answer (RFC 9457). Code is stable. Pointer (RFC 6901) names the wrong member
// of the request.
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

// New returns a problem.
func New(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// BadRequest returns the problem of an invalid member, by its JSON pointer; "" = the whole body, or
// a parameter that detail names.
func BadRequest(code, pointer, detail string) *Problem {
	p := New(http.StatusBadRequest, code, detail)
	p.Pointer = pointer
	return p
}

// Unknown returns the problem of a thing that does not exist, by its name.
func Unknown(what, name string) *Problem {
	detail := "there is no such " + what
	if name != "" {
		detail = fmt.Sprintf("there is no %s %.100q", what, name)
	}
	return New(http.StatusNotFound, "unknown_"+what, detail)
}

// NoRun returns the problem of a run that does not exist.
func NoRun(run stream.Run) *Problem {
	return New(http.StatusNotFound, "unknown_run", fmt.Sprintf("the thread %.100q has no run %.100q", run.Thread.ID, stream.ShownRunID(run.ID)))
}

// InvalidCursor returns the problem with a cursor, and the cursor or the reason if the error has
// it.
func InvalidCursor(err error) *Problem {
	detail := "this is not a cursor of this server, or its place is not in what is asked for"
	if _, why, ok := strings.Cut(err.Error(), stream.ErrInvalidCursor.Error()+": "); ok {
		detail += ": " + why
	}
	return BadRequest("invalid_cursor", "", detail)
}

// NoThread returns the problem of a thread that does not exist.
func NoThread(t stream.Thread) *Problem { return Unknown("thread", t.ID) }

// Within adds the part of the frame to the pointer of a problem.
func Within(part string, err error) error {
	p := *Of(err)
	p.Pointer = part + p.Pointer
	return &p
}
