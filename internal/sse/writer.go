// Package sse writes server-sent events as AG-UI clients read them: LF only, one event per frame,
// nothing in a frame but id and data.
//
//	id: 00000000002a00003-1k3x9
//	data: {"type":"TEXT_MESSAGE_CONTENT", …}
package sse

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ContentType is the media type of a stream. AG-UI clients read anything that is not exactly their
// binary type as SSE, so a charset would be harmless; the specification has none.
const ContentType = "text/event-stream"

// Writer writes one response. It is used by one goroutine.
type Writer struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	patience time.Duration
	buf      []byte
}

// maxKept is how much of a buffer is kept for later: a stream is open for hours, and one large event
// must not weigh on it for as long.
const maxKept = 64 << 10

// NewWriter sends the response's headers. A client that takes no bytes for as long as patience is cut.
func NewWriter(w http.ResponseWriter, patience time.Duration) (*Writer, error) {
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would collect the tokens otherwise
	w.WriteHeader(http.StatusOK)
	sw := &Writer{w: w, rc: http.NewResponseController(w), patience: patience}
	return sw, sw.Flush()
}

// Event adds one event; Flush sends it. Without an id the client's last one stays. Data must have no
// line feed: compact JSON has none.
func (w *Writer) Event(id string, data []byte) {
	if id != "" {
		w.buf = append(w.buf, "id: "...)
		w.buf = append(w.buf, id...)
		w.buf = append(w.buf, '\n')
	}
	w.buf = append(w.buf, "data: "...)
	w.buf = append(w.buf, data...)
	w.buf = append(w.buf, "\n\n"...)
}

// Comment adds a comment, which readers ignore and proxies count as life.
func (w *Writer) Comment(text string) {
	w.buf = append(w.buf, ": "...)
	w.buf = append(w.buf, text...)
	w.buf = append(w.buf, "\n\n"...)
}

// Flush sends what was added, in one write.
func (w *Writer) Flush() error {
	if err := w.rc.SetWriteDeadline(time.Now().Add(w.patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("sse: %w", err)
	}
	if len(w.buf) > 0 {
		if _, err := w.w.Write(w.buf); err != nil {
			return fmt.Errorf("sse: %w", err)
		}
		w.buf = w.buf[:0]
		if cap(w.buf) > maxKept {
			w.buf = nil
		}
	}
	if err := w.rc.Flush(); err != nil {
		return fmt.Errorf("sse: %w", err)
	}
	return nil
}
