package wire

import (
	"errors"
	"mime"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/llm"
)

// Deliver hands chunks on and reports whether more are wanted.
func Deliver(chunks []llm.Chunk, yield func(llm.Chunk, error) bool) bool {
	for _, chunk := range chunks {
		if !yield(chunk, nil) {
			return false
		}
	}
	return true
}

// Unanswered returns the error of a request without a response. The HTTP client
// marks its own; any other comes from encoding the request, and would come
// again.
func Unanswered(err error) *llm.Error {
	var attempted *url.Error
	if !errors.As(err, &attempted) {
		return &llm.Error{Code: llm.CodeInvalidRequest, Message: "the request cannot be encoded", Err: err}
	}
	return FromTransport(err)
}

// Streams reports whether the body may hold events. Servers differ in what
// they call those; pages and documents are what a wrong URL gives.
func Streams(res *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return mediaType != "text/html" && mediaType != "application/json"
}

// Misplaced returns the error of a successful response that is no event stream.
func Misplaced(res *http.Response) *llm.Error {
	const reason = "the response is not an event stream; check the base URL"
	return &llm.Error{Code: llm.CodeMalformedResponse, Status: res.StatusCode, Message: reason, Reason: reason}
}

// CheckBaseURL returns what is wrong with a base URL that came from variable.
func CheckBaseURL(base, variable string) *llm.Error {
	address, err := url.Parse(base)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		reason := variable + " is not an http or https URL"
		return &llm.Error{Code: llm.CodeInvalidRequest, Message: reason, Reason: reason, Hint: "set " + variable}
	}
	return nil
}
