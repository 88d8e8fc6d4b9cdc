// Package live writes responses that come into being while they are read: it sends at once what is
// there, and cuts who does not take it.
package live

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ErrSlow: the client took no bytes for as long as patience, and its connection is over.
var ErrSlow = errors.New("live: the client does not read")

// Writer writes one response. It is used by one goroutine.
type Writer struct {
	buf      *[]byte // nil while nothing is to be sent
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	deadline time.Time // of the connection, for whatever is being written
}

// pieceBytes is how much is sent at a time: a client that has much to catch up with does not get it
// copied as a whole. Nor is a buffer kept that has become larger.
const pieceBytes = 64 << 10

// buffers are those of all writers: a stream is open for hours, and needs one for moments.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// NewWriter sends the response's headers. A client that takes no bytes for as long as patience, or up to
// an eighth longer, is cut.
func NewWriter(w http.ResponseWriter, contentType string, patience time.Duration) (*Writer, error) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would collect the tokens otherwise
	h.Add("Vary", "Accept")
	w.WriteHeader(http.StatusOK)
	lw := &Writer{w: w, rc: http.NewResponseController(w), patience: patience}
	return lw, lw.Flush()
}

// Buffer is what the next Flush will send; append to it. It is the writer's until then.
func (w *Writer) Buffer() *[]byte {
	if w.buf == nil {
		w.buf = buffers.Get().(*[]byte)
	}
	return w.buf
}

// Full tells that enough was added to be sent.
func (w *Writer) Full() bool { return w.buf != nil && len(*w.buf) >= pieceBytes }

// Flush sends what was added, in one write. It fails with ErrSlow when the client doesn't take it.
func (w *Writer) Flush() error {
	begun := time.Now()
	err := w.renew(begun)
	if err == nil {
		err = w.flush()
	}
	if time.Since(begun) >= w.patience {
		return ErrSlow // by the clock: gin flushes without telling how that went
	}
	return err
}

// renew gives the client at least its patience. The deadline is not moved for every event: that would
// be a seventh of what an event costs.
func (w *Writer) renew(now time.Time) error {
	if w.deadline.Sub(now) >= w.patience {
		return nil
	}
	w.deadline = now.Add(w.patience + w.patience/8)
	if err := w.rc.SetWriteDeadline(w.deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("live: %w", err)
	}
	return nil
}

func (w *Writer) flush() error {
	if w.buf != nil {
		if _, err := w.w.Write(*w.buf); err != nil {
			return fmt.Errorf("live: %w", err)
		}
		if *w.buf = (*w.buf)[:0]; cap(*w.buf) <= pieceBytes {
			buffers.Put(w.buf)
		}
		w.buf = nil
	}
	if err := w.rc.Flush(); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return nil
}
