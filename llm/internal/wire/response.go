package wire

import (
	"errors"
	"mime"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/llm"
)

// RequestError returns the error of a request that got no response. net/http wraps its own errors
// in [*url.Error]. Any other error comes from encoding the request, so a retry cannot succeed.
func RequestError(err error) *llm.Error {
	var attempted *url.Error
	if !errors.As(err, &attempted) {
		return &llm.Error{Code: llm.CodeInvalidRequest, Message: "the request cannot be encoded", Err: err}
	}
	return FromTransport(err)
}

// IsEventStream reports whether the body can be an event stream. Servers label event streams with
// various media types, so only the two types of a wrong base URL are excluded: HTML pages and JSON
// documents.
func IsEventStream(res *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return mediaType != "text/html" && mediaType != "application/json"
}
