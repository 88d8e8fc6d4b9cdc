package problem

import (
	"errors"
	"net/http"
	"testing"

	"github.com/perdure/perdure/stream"
)

// TestWithinExtendsPointer: Within adds the pointer of a part to a problem's pointer. A server
// failure keeps its cause, which the log needs.
func TestWithinExtendsPointer(t *testing.T) {
	t.Parallel()
	shared := BadRequest("invalid_input", "/runId", "is missing")
	p := Of(Within("/input", shared))
	if p.Pointer != "/input/runId" || p.Code != "invalid_input" || shared.Pointer != "/runId" {
		t.Errorf("Within(/input) = %+v, want the pointer /input/runId; the original has %+v", p, shared)
	}
	if p := Of(Within("/waitFor", stream.ErrInvalidCursor)); p.Pointer != "/waitFor" || p.Code != "invalid_cursor" {
		t.Errorf("Within(/waitFor) = %+v, want invalid_cursor with the pointer /waitFor", p)
	}
	cause := errors.New("the log is away")
	err := Within("/input", cause)
	if p := Of(err); !errors.Is(err, cause) || p.Status != http.StatusServiceUnavailable || p.Pointer != "" {
		t.Errorf("%v: got %+v, want %d and no pointer", err, p, http.StatusServiceUnavailable)
	}
}

// TestNotRepeatableKeepsCause: NotRepeatable changes the advice of a 503 with an unknown outcome,
// and keeps its cause.
func TestNotRepeatableKeepsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("the log is away")
	err := NotRepeatable(cause, "look first")
	if p := Of(err); !errors.Is(err, cause) || p.Status != http.StatusServiceUnavailable || p.RetryAfter == 0 || p.Detail != unknownOutcome+"look first" {
		t.Errorf("%v: got %+v, want %d with the detail of an unknown outcome", err, p, http.StatusServiceUnavailable)
	}
	for _, err := range []error{nil, Full("open streams"), stream.ErrGone} {
		if got := NotRepeatable(err, "look first"); got != err { //nolint:errorlint // the same error is returned
			t.Errorf("%v: got %v, want the same error", err, got)
		}
	}
}
