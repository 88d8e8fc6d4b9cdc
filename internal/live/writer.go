// Package live writes responses that come into being while they are read: it sends at once what is
// there, and cuts who does not take it.
package live

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrSlow: the client took no bytes for as long as patience, and its connection is over.
var ErrSlow = errors.New("live: the client does not read")

// Writer writes one response. It is used by one goroutine.
type Writer struct {
	// Buf is what Flush will send; append to it.
	Buf []byte

	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	deadline time.Time // of the connection, for whatever is being written
}

// maxKept is how much of a buffer is kept for later: a stream is open for hours, and one large event
// must not weigh on it for as long.
const maxKept = 64 << 10

// NewWriter sends the response's headers. A client that takes no bytes for as long as patience is cut.
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
	if len(w.Buf) > 0 {
		if _, err := w.w.Write(w.Buf); err != nil {
			return fmt.Errorf("live: %w", err)
		}
		w.Buf = w.Buf[:0]
		if cap(w.Buf) > maxKept {
			w.Buf = nil
		}
	}
	if err := w.rc.Flush(); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	return nil
}
