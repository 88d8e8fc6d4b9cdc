// Package sse writes server-sent events as AG-UI clients read them: LF only, one event per frame,
// nothing in a frame but id and data.
//
//	id: 00000000002a00003-1k3x9
//	data: {"type":"TEXT_MESSAGE_CONTENT", …}
package sse

import (
	"net/http"
	"time"

	"github.com/perdure/perdure/internal/live"
)

// ContentType is the media type of a stream. AG-UI clients read anything that is not exactly their
// binary type as SSE, so a charset would be harmless; the specification has none.
const ContentType = "text/event-stream"

// Writer writes one response. It is used by one goroutine.
type Writer struct{ live *live.Writer }

// NewWriter sends the response's headers. A client that takes no bytes for as long as patience is cut.
func NewWriter(w http.ResponseWriter, patience time.Duration) (*Writer, error) {
	lw, err := live.NewWriter(w, ContentType, patience)
	return &Writer{lw}, err
}

// Event adds one event; Flush sends it. Without an id the client's last one stays. Data must have no
// line feed: compact JSON has none.
func (w *Writer) Event(id string, data []byte) {
	to := w.live.Buffer()
	b := *to
	if id != "" {
		b = append(b, "id: "...)
		b = append(b, id...)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, data...)
	*to = append(b, "\n\n"...)
}

// Comment adds a comment, which readers ignore and proxies count as life.
func (w *Writer) Comment(text string) {
	to := w.live.Buffer()
	b := append(*to, ": "...)
	b = append(b, text...)
	*to = append(b, "\n\n"...)
}

// Full tells that enough was added to be sent.
func (w *Writer) Full() bool { return w.live.Full() }

// Flush sends what was added, in one write.
func (w *Writer) Flush() error { return w.live.Flush() }
