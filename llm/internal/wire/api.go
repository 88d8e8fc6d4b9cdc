package wire

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/perdure/perdure/llm"
)

// API is the part of a provider that errors depend on: the server, the API key, and the format of
// its error bodies. It is immutable after construction, so concurrent calls share it.
type API struct {
	Server
	// Key is the API key, which error messages must not contain; "" = no key is configured.
	Key string
	// ParseFault parses an error body or error event of the API. ok is false if data is no such
	// error.
	ParseFault func(data []byte) (fault Fault, ok bool)
}

// Fault is an error as the provider reports it, in an HTTP body or in the event stream.
type Fault struct {
	// Message is the provider's text. It can contain prompts and keys; [Quote] removes them.
	Message string
	// Code is the code that the provider's error type means; "" if the HTTP status is as specific.
	Code llm.Code
	// Status is the HTTP status that the fault names in its body; 0 = none.
	Status int
	// Invalid reports whether the provider blames the request, for faults without a status.
	Invalid bool
	// RetryAfter is the delay that the fault requests; 0 = none.
	RetryAfter time.Duration
}

// Accept checks the result of an HTTP request. It returns the response if that is an event stream,
// and the caller must close its body. Otherwise it closes the body and returns an error. err is the
// error of the HTTP request; for a response with an error status it is ignored, because errors of
// SDKs contain the request with the key.
func (a API) Accept(req *llm.Request, res *http.Response, err error) (*http.Response, error) {
	if res == nil {
		return nil, RequestError(err)
	}
	failure := a.failureOf(req, res, err)
	if failure != nil {
		_ = res.Body.Close()
		return nil, failure
	}
	return res, nil
}

// failureOf returns the error of a response; nil = it is an event stream. It does not close the
// body.
func (a API) failureOf(req *llm.Request, res *http.Response, err error) error {
	switch {
	case res.StatusCode >= 400:
		return a.refused(req, res)
	case err != nil:
		return FromTransport(err)
	case !IsEventStream(res):
		return a.misplaced(req, res)
	}
	return nil
}

// refused returns the error of a response with a status of 400 or above. The transport of
// [Limits.Client] limits how much of the body is read.
func (a API) refused(req *llm.Request, res *http.Response) error {
	// The status is sufficient if the body cannot be read.
	body, _ := io.ReadAll(res.Body)
	fault, _ := a.ParseFault(body)
	failure := &llm.Error{
		Code: fault.Code, Status: res.StatusCode, RetryAfter: RetryAfter(res.Header, time.Now()),
		Message: Quote(fault.Message, req, a.Key),
	}
	if failure.Code == "" {
		failure.Code = llm.CodeOfStatus(res.StatusCode)
	}
	if failure.RetryAfter == 0 {
		failure.RetryAfter = fault.RetryAfter
	}
	if failure.Message == "" {
		failure.Message = http.StatusText(res.StatusCode)
	}
	return failure
}

// misplaced returns the error of a successful response that is no event stream. Some servers report
// an error with status 200, so the body is parsed for one.
func (a API) misplaced(req *llm.Request, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, errorBodyBytes))
	if err != nil {
		return FromTransport(err)
	}
	if fault, ok := a.ParseFault(bytes.TrimSpace(body)); ok {
		return a.Failed(req, fault)
	}
	const reason = "the response is not an event stream: check the base URL"
	return &llm.Error{Code: llm.CodeMalformedResponse, Status: res.StatusCode, Message: reason, Reason: reason}
}

// Failed returns the error of a fault that arrived in a response with a success status, usually as
// an event. Without any classification the fault counts as [llm.CodeUnavailable], which is
// retryable.
func (a API) Failed(req *llm.Request, f Fault) error {
	failure := &llm.Error{Code: f.Code, Status: f.Status, RetryAfter: f.RetryAfter, Message: Quote(f.Message, req, a.Key)}
	switch {
	case failure.Code != "":
	case f.Status > 0:
		failure.Code = llm.CodeOfStatus(f.Status)
	case f.Invalid:
		failure.Code = llm.CodeInvalidRequest
	default:
		failure.Code = llm.CodeUnavailable
	}
	return failure
}
