// Package sse writes server-sent events in the form that all AG-UI clients parse: lines end with LF
// only, one event per SSE block, and no fields but id and data.
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

// ContentType is the media type of a stream. It has no charset parameter: the specification (HTML,
// section 9.2) fixes the encoding to UTF-8.
const ContentType = "text/event-stream"

// Writer writes the events of one response. Only one goroutine may call its methods; the timer of
// KeepAlive writes concurrently with it.
type Writer struct {
	mu   sync.Mutex // guards live and sent
	live *live.Writer
	sent time.Time // when bytes were last sent to the client
}

// NewWriter sends the headers of the response. live.Handler must serve the request.
func NewWriter(w http.ResponseWriter) (*Writer, error) {
	lw, err := live.NewWriter(w, ContentType)
	return &Writer{live: lw, sent: time.Now()}, err
}

// Event adds one event; Flush sends it. With an empty id, the client keeps its last event ID. data
// must have no line feed: compact JSON has none. Event sends a large event at once, and then fails
// as Flush does.
func (w *Writer) Event(id string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	buf := w.live.Buffer()
	b := *buf
	if id != "" {
		b = append(b, "id: "...)
		b = append(b, id...)
		b = append(b, '\n')
	}
	*buf = append(b, "data: "...)
	if err := w.live.Append(data); err != nil {
		return err
	}
	buf = w.live.Buffer()
	*buf = append(*buf, "\n\n"...)
	return nil
}

// Full reports whether enough was added that the caller should flush.
func (w *Writer) Full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live.Full()
}

// Flush sends the added events in one write. It blocks until the client has taken them; it fails
// with live.ErrSlow if the client is too slow.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

// flush is Flush; the caller holds mu.
func (w *Writer) flush() error {
	err := w.live.Flush()
	if err == nil {
		w.sent = time.Now()
	}
	return err
}

// heartbeat is an SSE comment: clients ignore it, and proxies count it as traffic.
const heartbeat = ": heartbeat\n\n"

// KeepAlive sends a heartbeat whenever no bytes were sent to the client for a period. It needs no
// help of the writer's goroutine, which may be blocked in a wait for events. If a heartbeat cannot
// be sent, KeepAlive calls failed once, from the timer's goroutine, and ends. The caller must call
// stop before the response ends; nothing is written after stop has returned, but failed may be
// called after it.
func (w *Writer) KeepAlive(period time.Duration, failed func(error)) (stop func()) {
	var timer *time.Timer
	stopped := false // guarded by mu
	w.mu.Lock()
	defer w.mu.Unlock()
	beat := func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if stopped {
			return nil
		}
		if time.Since(w.sent) >= period {
			buf := w.live.Buffer()
			*buf = append(*buf, heartbeat...)
			if err := w.flush(); err != nil {
				return err
			}
		}
		timer.Reset(time.Until(w.sent.Add(period)))
		return nil
	}
	timer = time.AfterFunc(time.Until(w.sent.Add(period)), func() {
		if err := beat(); err != nil {
			failed(err) // without mu: it may use the writer
		}
	})
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
