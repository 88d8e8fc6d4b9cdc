package wire

import (
	"bytes"
	"io"
	"net/http"
	"time"

	"github.com/perdure/perdure/llm"
)

// API is what providers have in common: a server, a key, and the form of its errors.
type API struct {
	Server
	// Key is hidden in the texts of errors; "" = none is configured.
	Key string
	// ParseFault reads an error of the provider; ok is false if data is none.
	ParseFault func(data []byte) (fault Fault, ok bool)
}

// Fault is an error as a provider writes it, in a body or in the stream.
type Fault struct {
	Message string
	// Code is what the provider's words mean; "" if they say no more than the status.
	Code llm.Code
	// Status is the HTTP status that a fault in the stream names; 0 = none.
	Status int
	// Invalid tells that the provider blames the request.
	Invalid bool
	// RetryAfter is the pause that the fault asks for; 0 = none.
	RetryAfter time.Duration
}

// Accept returns a response that is an event stream; anything else is an error, and its body is
// closed. err is the error of the request. Errors of SDKs are not used for responses: they hold the
// request with the key.
func (a API) Accept(req *llm.Request, res *http.Response, err error) (*http.Response, error) {
	if res == nil {
		return nil, Unanswered(err)
	}
	failure := a.failureOf(req, res, err)
	if failure != nil {
		_ = res.Body.Close()
		return nil, failure
	}
	return res, nil
}

func (a API) failureOf(req *llm.Request, res *http.Response, err error) error {
	switch {
	case res.StatusCode >= 400:
		return a.refused(req, res)
	case err != nil:
		return FromTransport(err)
	case !Streams(res):
		return a.misplaced(req, res)
	}
	return nil
}

// refused returns the error of a response with a status of 400 and above.
func (a API) refused(req *llm.Request, res *http.Response) error {
	// The status is enough if the body cannot be read.
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

// misplaced returns the error of a successful response that is no event stream.
func (a API) misplaced(req *llm.Request, res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, errorBodyBytes))
	if err != nil {
		return FromTransport(err)
	}
	if fault, ok := a.ParseFault(bytes.TrimSpace(body)); ok {
		return a.Failed(req, fault)
	}
	const reason = "the response is not an event stream; check the base URL"
	return &llm.Error{Code: llm.CodeMalformedResponse, Status: res.StatusCode, Message: reason, Reason: reason}
}

// Failed returns the error of a fault in a response that began well.
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
