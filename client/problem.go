package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// Problem is an error response of the server (RFC 9457).
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	// Code identifies the kind of the error, and is stable across versions. It is "" if the
	// response came from another server, such as a proxy.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Pointer is the JSON pointer of the invalid member (RFC 6901).
	Pointer string `json:"pointer"`
	// Parameter is the name of the invalid query parameter.
	Parameter string `json:"parameter"`
	// Errors are the mistakes in an agent's definition.
	Errors []Mistake `json:"errors"`
	// ActiveRun is the run that keeps a thread busy.
	ActiveRun string `json:"activeRun"`
	// PendingToolCallIDs are the client tool calls whose results the thread waits for.
	PendingToolCallIDs []string `json:"pendingToolCallIds"`
	// Recorded is the decision or the result that was recorded before.
	Recorded json.RawMessage `json:"recorded"`
	// RetryAfter is the pause that the server asks for; 0 = none.
	RetryAfter time.Duration `json:"-"`
	// JSON is the response as received, with members that this version may not know; nil = it was
	// not JSON.
	JSON json.RawMessage `json:"-"`
}

// Mistake is a mistake in a definition. Line and Column count from 1.
type Mistake struct {
	Pointer string `json:"pointer,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Detail  string `json:"detail"`
}

func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Pointer != "" {
		text = p.Pointer + ": " + text
	}
	if p.Code == "" {
		return fmt.Sprintf("HTTP %d: %s", p.Status, text)
	}
	return p.Code + ": " + text
}

// isTemporary reports whether the client repeats the request: the server or a proxy was
// unavailable, and the outcome may be unknown, or the server asks to send the request later.
func (p *Problem) isTemporary() bool {
	switch p.Status {
	case http.StatusTooManyRequests:
		return p.RetryAfter > 0
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Code returns the code of a Problem; "" for other errors.
func Code(err error) string {
	var p *Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// UnreachableError reports that the server could not be reached for Config.RetryWindow. The outcome
// of the request is unknown.
type UnreachableError struct {
	URL string
	Err error // of the last attempt
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%s cannot be reached: %v", e.URL, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// maxDetailBytes bounds the text of a response that is not a problem document, in bytes.
const maxDetailBytes = 300

// problemOf returns the Problem of a response whose status is an error.
func problemOf(resp *http.Response, body []byte) *Problem {
	p := &Problem{}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "application/problem+json" && json.Unmarshal(body, p) == nil {
		p.JSON = body
	} else {
		p = &Problem{Detail: shortened(body)}
	}
	p.Status = resp.StatusCode
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.RetryAfter = min(time.Duration(seconds)*time.Second, time.Hour)
	}
	return p
}

// shortened returns the beginning of a body as text; "" if it is not UTF-8.
func shortened(body []byte) string {
	if !utf8.Valid(body) {
		return ""
	}
	if len(body) <= maxDetailBytes {
		return string(body)
	}
	cut := maxDetailBytes
	for !utf8.RuneStart(body[cut]) {
		cut--
	}
	return string(body[:cut]) + "…"
}
