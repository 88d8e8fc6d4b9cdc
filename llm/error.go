package llm

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Code classifies a failure by what the caller can do about it.
type Code string

// The codes of an [Error]. R marks the retryable ones.
const (
	CodeRateLimited       Code = "rate_limited"       // R: too many requests or tokens for now
	CodeUnavailable       Code = "unavailable"        // R: down, overloaded or unreachable
	CodeTimeout           Code = "timeout"            // R: the provider or network took too long
	CodeConflict          Code = "conflict"           // R: the same request is in progress
	CodeTruncated         Code = "truncated"          // R: the stream ended too early
	CodeMalformedResponse Code = "malformed_response" // R: the provider violated its protocol
	CodeProviderBusy      Code = "provider_busy"      // R: the call was not made: a limit, or a Retry-After
	CodeCircuitOpen       Code = "circuit_open"       // R: the call was not made: earlier ones failed
	CodeQuotaExceeded     Code = "quota_exceeded"     // no credit or quota left
	CodeInvalidRequest    Code = "invalid_request"    // the provider rejects the request
	CodeRequestTooLarge   Code = "request_too_large"  // the request has too many bytes
	CodeContextLength     Code = "context_length"     // the conversation has too many tokens
	CodeContentFilter     Code = "content_filter"     // the provider rejects the content
	CodeUnauthorized      Code = "unauthorized"       // no API key, or an invalid one
	CodeForbidden         Code = "forbidden"          // the API key has no permission
	CodeNotFound          Code = "not_found"          // no such model or endpoint
	CodeResponseTooLarge  Code = "response_too_large" // the response exceeds a limit of Perdure
)

// maxMessage is the maximum length, in bytes, of the message or reason in the text of an error.
const maxMessage = 500

// Error is the failure of one completion. Message can contain content of the conversation; Reason,
// Host and Hint are safe for logs and metrics. An Error must not be changed after it is returned:
// several calls can share it.
type Error struct {
	Code Code

	// Status is the HTTP status, or 0 if the failure is not an HTTP response.
	Status int

	// RetryAfter is the delay that the provider requested; 0 = none.
	RetryAfter time.Duration

	// Message describes the failure, in the provider's words where it gave any. Providers remove
	// prompts and API keys as far as they recognize them, but content can remain.
	Message string

	// Reason is the cause in the fixed words of this module, such as "connection refused" or "no
	// API key". It contains no content and no secret. It is empty if Code and Status are
	// sufficient.
	Reason string

	// Host is the provider's host, with the port if the base URL has one. It is empty if the
	// failure does not concern a server.
	Host string

	// Hint tells an operator what to do, for instance which environment variable to set. It
	// contains no content and no secret.
	Hint string

	// Final forbids a retry even if Code is retryable.
	Final bool

	// Err is the cause, for errors.Is and errors.As. [Error.Error] omits its text, because causes
	// quote requests and responses.
	Err error
}

// Error returns the code, the status, and at most 500 bytes of the message. Without a message it
// returns the reason instead.
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

// Retryable reports whether the same request can succeed later. The list of codes must agree with
// the R marks of the constants.
func (e *Error) Retryable() bool {
	if e.Final {
		return false
	}
	switch e.Code {
	case CodeRateLimited, CodeUnavailable, CodeTimeout, CodeConflict, CodeTruncated, CodeMalformedResponse, CodeProviderBusy, CodeCircuitOpen:
		return true
	default:
		return false
	}
}

// Refused reports whether the provider rejected the request without processing it, so that the
// request costs nothing. It is false if the provider is unreachable, sends nothing, or breaks off
// its answer: the provider may have produced billed tokens.
func (e *Error) Refused() bool {
	switch e.Code {
	case CodeRateLimited, CodeConflict, CodeProviderBusy, CodeCircuitOpen, CodeQuotaExceeded, CodeInvalidRequest, CodeRequestTooLarge, CodeContextLength,
		CodeContentFilter, CodeUnauthorized, CodeForbidden, CodeNotFound:
		return true
	case CodeUnavailable:
		return e.Err == nil // a non-nil Err means that the connection failed
	default:
		return e.Status >= 400
	}
}

// CodeOfStatus maps an HTTP status of 400 or above to a code. Providers use it when the body of the
// response has no more specific error code.
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

// clip truncates s to at most limit bytes without splitting a character, and marks the cut with an
// ellipsis.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:limit-len(mark)], "") + mark
}
