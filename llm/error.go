package llm

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Code is what went wrong, in terms that a caller can act on.
type Code string

// The codes of an [Error]. Those marked with R are retryable.
const (
	CodeRateLimited       Code = "rate_limited"       // R: too many requests or tokens for now
	CodeUnavailable       Code = "unavailable"        // R: the provider is down, overloaded or unreachable
	CodeTimeout           Code = "timeout"            // R: the provider, or the way to it, took too long
	CodeConflict          Code = "conflict"           // R: the provider still works on an equal request
	CodeTruncated         Code = "truncated"          // R: the stream ended before the completion did
	CodeMalformedResponse Code = "malformed_response" // R: the provider broke its protocol
	CodeQuotaExceeded     Code = "quota_exceeded"     // the account is out of money or quota
	CodeInvalidRequest    Code = "invalid_request"    // the provider refuses the request as it is
	CodeRequestTooLarge   Code = "request_too_large"  // the request has too many bytes
	CodeContextLength     Code = "context_length"     // the conversation has too many tokens
	CodeContentFilter     Code = "content_filter"     // the provider refuses the content
	CodeUnauthorized      Code = "unauthorized"       // no key, or one that the provider does not know
	CodeForbidden         Code = "forbidden"          // the key may not do this
	CodeNotFound          Code = "not_found"          // no such model or endpoint
	CodeResponseTooLarge  Code = "response_too_large" // the response passed a limit of ours
)

// maxMessage bounds, in bytes, what the text of an error may quote from a provider.
const maxMessage = 500

// Error is the failure of one completion.
type Error struct {
	Code Code

	// Status is the HTTP status, or 0 if the failure was not a response.
	Status int

	// RetryAfter is how long the provider asked us to wait; 0 if it did not.
	RetryAfter time.Duration

	// Message says what happened, in the provider's words where it gave any.
	// Providers keep prompts and keys out of it as far as they can recognize them;
	// it may still hold content.
	Message string

	// Reason says why, in this package's words: "connection refused", "no API
	// key". It holds no content and no secret. Empty if Code and Status say all.
	Reason string

	// Host is the provider's host, with the port if the base URL has one. Empty
	// if the failure does not concern a server.
	Host string

	// Hint says what an operator can do, such as the environment variable to set.
	// It holds no content and no secret.
	Hint string

	// Final means that the request must not be repeated although Code allows it.
	Final bool

	// Err is the cause, for errors.Is and errors.As. Its text is not part of
	// Error's, as causes quote requests and responses.
	Err error
}

// Error returns the code, the status, and at most 500 bytes of the message, or
// the reason if there is no message.
func (e *Error) Error() string {
	text := "llm: " + string(e.Code)
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if words := cmp.Or(e.Message, e.Reason); words != "" {
		text += ": " + clip(words, maxMessage)
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	if e.Final {
		return false
	}
	switch e.Code {
	case CodeRateLimited, CodeUnavailable, CodeTimeout, CodeConflict, CodeTruncated, CodeMalformedResponse:
		return true
	default:
		return false
	}
}

// Refused reports whether the provider refused the request instead of answering
// it, so that the request costs nothing. A provider that cannot be reached, that
// is silent, or whose answer breaks off may have done work, and has not refused.
func (e *Error) Refused() bool {
	switch e.Code {
	case CodeRateLimited, CodeConflict, CodeQuotaExceeded, CodeInvalidRequest, CodeRequestTooLarge, CodeContextLength,
		CodeContentFilter, CodeUnauthorized, CodeForbidden, CodeNotFound:
		return true
	case CodeUnavailable:
		return e.Err == nil // a cause means that the connection failed
	default:
		return e.Status >= 400
	}
}

// CodeOfStatus maps an HTTP status of 400 and above to a code. Providers ask
// it once, after what the body of the response says.
func CodeOfStatus(status int) Code {
	switch status {
	case 401:
		return CodeUnauthorized
	case 402:
		return CodeQuotaExceeded
	case 403:
		return CodeForbidden
	case 404:
		return CodeNotFound
	case 408, 504:
		return CodeTimeout
	case 409:
		return CodeConflict
	case 413:
		return CodeRequestTooLarge
	case 429:
		return CodeRateLimited
	}
	if status >= 500 {
		return CodeUnavailable
	}
	return CodeInvalidRequest
}

// clip cuts s to at most limit bytes, at the start of a rune.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}
