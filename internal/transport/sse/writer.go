// Package sse writes server-sent events as AG-UI clients read them: LF only, one event per frame,
// nothing in a frame but id and data.
//
//	id: 00000000002a00003-1k3x9
//	data: {"type":"TEXT_MESSAGE_CONTENT", …}
package sse

import (
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/transport/live"
)

// ContentType is the media type of a stream. AG-UI clients read anything that is not exactly their
// binary type as SSE, so a charset would be harmless; the specification has none.
const ContentType = "text/event-stream"

// Writer writes one response. Its methods are for one goroutine; KeepAlive writes concurrently with
// it.
type Writer struct {
	mu   sync.Mutex // guards live and sent
	live *live.Writer
	sent time.Time // when the client was last sent bytes
}

// NewWriter sends the response's headers. The request must be one that live.Handler serves.
func NewWriter(w http.ResponseWriter) (*Writer, error) {
	lw, err := live.NewWriter(w, ContentType)
	return &Writer{live: lw, sent: time.Now()}, err
}

// Event adds one event; Flush sends it. Without an id the client's last one stays. Data must have
// no line feed: compact JSON has none. A large event may be sent at once, so that Event fails as
// Flush does.
func (w *Writer) Event(id string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	to := w.live.Buffer()
	b := *to
	if id != "" {
		b = append(b, "id: "...)
		b = append(b, id...)
		b = append(b, '\n')
	}
	*to = append(b, "data: "...)
	if err := w.live.Append(data); err != nil {
		return err
	}
	to = w.live.Buffer()
	*to = append(*to, "\n\n"...)
	return nil
}

// Full tells that enough was added to be sent.
func (w *Writer) Full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live.Full()
}

// Flush sends what was added, in one write.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

// flush sends what was added. The caller holds mu.
func (w *Writer) flush() error {
	err := w.live.Flush()
	if err == nil {
		w.sent = time.Now()
	}
	return err
}

// heartbeat is a comment: readers ignore it, and proxies count it as traffic.
const heartbeat = ": heartbeat\n\n"

// KeepAlive sends a heartbeat whenever the client has been sent no bytes for a period, whatever the
// writer's goroutine waits for meanwhile. If a heartbeat cannot be sent, KeepAlive calls failed
// once, from a goroutine of its own, and ends. The caller must call stop before the response ends;
// after stop nothing is written.
func (w *Writer) KeepAlive(period time.Duration, failed func(error)) (stop func()) {
	var timer *time.Timer
	stopped := false // guarded by mu
	w.mu.Lock()
	defer w.mu.Unlock()
	timer = time.AfterFunc(time.Until(w.sent.Add(period)), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if stopped {
			return
		}
		if time.Since(w.sent) >= period {
			to := w.live.Buffer()
			*to = append(*to, heartbeat...)
			if err := w.flush(); err != nil {
				failed(err)
				return
			}
		}
		timer.Reset(time.Until(w.sent.Add(period)))
	})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
