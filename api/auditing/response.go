package auditing

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
)

// errNotRecorded ends a response in whose place the client has got a 503.
var errNotRecorded = errors.New("api: the request could not be recorded")

// recordedResponse is a response before whose first byte the pending entry is settled. It is not
// safe for concurrent use, like every response.
type recordedResponse struct {
	gin.ResponseWriter

	c       *gin.Context
	pending *Pending
	began   bool
	err     error // of begin
}

// begin settles the entry, once. If the request took effect but could not be recorded, it answers
// with a 503, and later writes fail.
func (w *recordedResponse) begin() error {
	if w.began {
		return w.err
	}
	w.began = true
	err := w.pending.settle(w.c.Request.Context(), w.Status(), problem.Kept(w.c))
	if err == nil {
		return nil
	}
	w.err = errNotRecorded
	header := w.Header()
	for name := range header {
		if name == "Content-Length" || name == "Etag" || name == "Location" || name == "Cache-Control" {
			header.Del(name)
		}
	}
	problem.Write(w.ResponseWriter, problem.Of(err))
	return w.err
}

// WriteHeaderNow implements [gin.ResponseWriter].
func (w *recordedResponse) WriteHeaderNow() {
	if w.begin() == nil {
		w.ResponseWriter.WriteHeaderNow()
	}
}

// Write implements [http.ResponseWriter].
func (w *recordedResponse) Write(p []byte) (int, error) {
	if err := w.begin(); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(p) //nolint:wrapcheck // a response writer
}

// WriteString implements [gin.ResponseWriter].
func (w *recordedResponse) WriteString(s string) (int, error) {
	if err := w.begin(); err != nil {
		return 0, err
	}
	return w.ResponseWriter.WriteString(s) //nolint:wrapcheck // a response writer
}

// Flush implements [http.Flusher].
func (w *recordedResponse) Flush() { _ = w.FlushError() }

// FlushError sends what was written. [http.ResponseController] calls it.
func (w *recordedResponse) FlushError() error {
	if err := w.begin(); err != nil {
		return err
	}
	w.ResponseWriter.Flush()
	return nil
}

// Unwrap gives an [http.ResponseController] access to the connection.
func (w *recordedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }
