// Package live writes responses at the pace of their clients: in pieces, each with its own
// deadline. It cuts a client that does not read. Handler does so for every response of a server;
// Writer is for a response that is produced over a long time, such as an event stream.
package live

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// Writer writes one streaming response. It is not safe for concurrent use.
type Writer struct {
	buf *[]byte // nil = nothing to send
	w   http.ResponseWriter
	rc  *http.ResponseController
	// paced is the response of Handler that w wraps.
	paced *response
}

// fullBytes is how much a caller should add before it flushes. keptBytes is the capacity of the
// largest buffer that is kept for reuse.
const (
	fullBytes = 32 << 10
	keptBytes = 64 << 10
)

// buffers are shared by all writers: a stream is open for hours, and needs a buffer only for
// moments.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// NewWriter sends the headers of the response. Handler must serve the request.
func NewWriter(w http.ResponseWriter, contentType string) (*Writer, error) {
	paced := responseOf(w)
	if paced == nil {
		return nil, errors.New("live: the response is not one of Handler")
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would buffer the events otherwise
	h.Add("Vary", "Accept")
	w.WriteHeader(http.StatusOK)
	lw := &Writer{w: w, rc: http.NewResponseController(w), paced: paced}
	return lw, lw.Flush()
}

// Buffer returns the buffer of the next Flush; the caller appends to it. It is invalid after the
// next call of another method.
func (w *Writer) Buffer() *[]byte {
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
	return w.buf
}

// Full reports whether enough was added that the caller should flush.
func (w *Writer) Full() bool { return w.buf != nil && len(*w.buf) >= fullBytes }

// Append adds bytes. More than PieceBytes are sent at once, after the buffer, so that no copy of
// them is held while the client takes them.
func (w *Writer) Append(p []byte) error {
	if len(p) <= PieceBytes {
		buf := w.Buffer()
		*buf = append(*buf, p...)
		return nil
	}
	if err := w.drain(); err != nil {
		return err
	}
	return w.write(p)
}

// Flush sends the buffer. It fails with ErrSlow if the client is too slow.
func (w *Writer) Flush() error {
	if err := w.drain(); err != nil {
		return err
	}
	if err := w.rc.Flush(); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return w.paced.err // gin's Flush has no result, so the error is read here
}

// drain writes the buffer and returns it to the pool.
func (w *Writer) drain() error {
	if w.buf == nil {
		return nil
	}
	if err := w.write(*w.buf); err != nil {
		return err
	}
	if *w.buf = (*w.buf)[:0]; cap(*w.buf) <= keptBytes {
		buffers.Put(w.buf)
	}
	w.buf = nil
	return nil
}

// write writes p to the response.
func (w *Writer) write(p []byte) error {
	if _, err := w.w.Write(p); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return nil
}
