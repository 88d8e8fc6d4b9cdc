package wire

import (
	"errors"
	"mime"
	"net/http"
	"net/url"

	"github.com/perdure/perdure/llm"
)

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
