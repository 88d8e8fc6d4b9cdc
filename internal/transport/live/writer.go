// Package live writes responses at the pace of their clients: in pieces, each with its own
// deadline. A client that does not read is cut. Handler does so for every response of a server;
// Writer is for a response that is written while it comes into being.
package live

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// Writer writes one response that goes on for as long as there is something to send. It is used by
// one goroutine.
type Writer struct {
	buf *[]byte // nil while nothing is to be sent
	w   http.ResponseWriter
	rc  *http.ResponseController
	// paced is the response below w.
	paced *response
}

const (
	// fullBytes is how much is gathered before it is sent.
	fullBytes = 32 << 10
	// keptBytes is the largest buffer that is kept for reuse.
	keptBytes = 64 << 10
)

// buffers are those of all writers: a stream is open for hours, and needs one for moments.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// NewWriter sends the response's headers. The request must be one that Handler serves.
func NewWriter(w http.ResponseWriter, contentType string) (*Writer, error) {
	paced := responseOf(w)
	if paced == nil {
		return nil, errors.New("live: the response is not one of Handler")
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would collect the tokens otherwise
	h.Add("Vary", "Accept")
	w.WriteHeader(http.StatusOK)
	lw := &Writer{w: w, rc: http.NewResponseController(w), paced: paced}
	return lw, lw.Flush()
}

// Buffer returns what the next Flush will send; append to it. It is the writer's until then.
func (w *Writer) Buffer() *[]byte {
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
	return w.buf
}

// Full tells that enough was added to be sent.
func (w *Writer) Full() bool { return w.buf != nil && len(*w.buf) >= fullBytes }

// Append adds bytes to what will be sent. Many are sent at once, after what was added before, so
// that no copy of them is held while the client takes them.
func (w *Writer) Append(p []byte) error {
	if len(p) <= PieceBytes {
		to := w.Buffer()
		*to = append(*to, p...)
		return nil
	}
	if err := w.drain(); err != nil {
		return err
	}
	return w.write(p)
}

// Flush sends what was added. It fails with ErrSlow when the client does not take it.
func (w *Writer) Flush() error {
	if err := w.drain(); err != nil {
		return err
	}
	if err := w.rc.Flush(); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return w.paced.err // gin flushes without telling how that went
}

// drain writes the buffer and gives it back.
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

func (w *Writer) write(p []byte) error {
	if _, err := w.w.Write(p); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return nil
}
