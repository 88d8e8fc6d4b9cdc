package remote

import (
	"fmt"
	"regexp"
	"time"

	"github.com/perdure/perdure/agui"
)

// Kind is the kind of a failure. Its values are stable codes.
type Kind string

// The kinds of failures.
const (
	// KindInvalid: the call cannot be made, for example because of its URL. Nothing was sent.
	KindInvalid Kind = "remote_call_invalid"
	// KindForbidden: the address, the certificate or a redirect is refused, or the host does not
	// exist. A repetition would fail, too.
	KindForbidden Kind = "remote_forbidden"
	// KindUnreachable: there was no connection. Nothing was sent.
	KindUnreachable Kind = "remote_unreachable"
	// KindRejected: the remote has refused the request for good (3xx and 4xx).
	KindRejected Kind = "remote_rejected"
	// KindUnavailable: the remote refuses requests at the moment (429, 503).
	KindUnavailable Kind = "remote_unavailable"
	// KindFailed: the remote has failed before the run began to stream (5xx).
	KindFailed Kind = "remote_failed"
	// KindNotEvents: the response is no event stream.
	KindNotEvents Kind = "remote_not_events"
	// KindBroken: the connection broke.
	KindBroken Kind = "remote_connection_broken"
	// KindSilent: the remote has sent nothing for Limits.Silence.
	KindSilent Kind = "remote_silent"
	// KindTruncated: the stream ended without RUN_FINISHED or RUN_ERROR.
	KindTruncated Kind = "remote_truncated"
	// KindTooLarge: the stream exceeds Limits.
	KindTooLarge Kind = "remote_too_large"
	// KindProtocol: the stream is not valid AG-UI. The cause is a *ProtocolError.
	KindProtocol Kind = "remote_protocol_error"
)

// Error is the failure of a call.
type Error struct {
	Kind Kind
	// Message is a description without content and without the path of the URL. It may be logged.
	Message string
	// Status is the HTTP status; 0 = there was no response.
	Status int
	// RetryAfter is the delay that the remote has requested; 0 = none.
	RetryAfter time.Duration
	// Excerpt is the beginning of the text with which the remote has refused the request, at most
	// 2 KiB of redacted text. It may quote the conversation, so it must not be logged.
	Excerpt string
	// Sent reports that the request may have reached the remote, so that the run may have begun.
	Sent bool
	// Received reports that events were yielded.
	Received bool
	// LastEventID is the ID of the last event that has one, see Event.ID.
	LastEventID string
	// Err is the cause; nil = there is none. Its text may contain addresses.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return "remote: " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// The rules that this package adds to those of a Verifier.
const (
	// RuleMalformed: each SSE event contains one event as JSON, and known members have valid values.
	RuleMalformed agui.Rule = "malformed"
)

// ProtocolError is the error of a stream that is not valid AG-UI.
type ProtocolError struct {
	// Rule is the rule that the event breaks: RuleMalformed, or one of a Verifier.
	Rule agui.Rule
	// Type is the type of the event; "" = it has none.
	Type agui.EventType
	// Index is the position of the SSE event in the response, from 0.
	Index int
	// Err is a *agui.DecodeError or a *agui.OrderError. Its text may quote the event.
	Err error
}

// Error implements error. The text has no content.
func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%s: event %d (%q) breaks the rule %s", KindProtocol, e.Index, ShownType(e.Type), e.Rule)
}

// shownType matches the types of events that may be logged.
var shownType = regexp.MustCompile(`^[A-Z_]{1,64}$`)

// ShownType returns the type of an event for a log; "" = it has not the form of a type, and may be
// content.
func ShownType(t agui.EventType) string {
	if !shownType.MatchString(string(t)) {
		return ""
	}
	return string(t)
}

// Unwrap returns the cause.
func (e *ProtocolError) Unwrap() error { return e.Err }
