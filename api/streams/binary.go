package streams

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/protobuf"
	"github.com/perdure/perdure/internal/transport/live"
	"github.com/perdure/perdure/stream/view"
)

// binaryTransport is the transport of a response in AG-UI's binary format: Protocol Buffers
// messages, each after its length. It has no heartbeats, because the format has no frame that
// clients skip: they reject an empty frame, and reject an unknown event or warn about it. TCP
// keep-alive finds clients that are gone. One goroutine uses it.
type binaryTransport struct{ w *live.Writer }

// Send implements Transport. It omits events that the format does not have, which clients would
// ignore, and flushes a full buffer early, so that a long past does not fill memory.
func (b binaryTransport) Send(frames []view.Frame) error {
	for _, f := range frames {
		e, err := agui.Decode(f.Event)
		if err != nil {
			return fmt.Errorf("api: %s: %w", f.Type, err)
		}
		buffer := b.w.Buffer()
		*buffer, err = protobuf.AppendFrame(*buffer, e)
		if err != nil && !errors.Is(err, protobuf.ErrUnknownEvent) { // a client would ignore the event
			return err
		}
		if b.w.Full() {
			if err := b.w.Flush(); err != nil {
				return err
			}
		}
	}
	return b.w.Flush()
}

// WantsBinary reports whether a request names the binary format in its Accept header, with a
// quality above 0. The specification would use the format for */* too; but then the output of curl
// would be unreadable.
func WantsBinary(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			media, params, err := mime.ParseMediaType(part)
			if err == nil && media == protobuf.MediaType && isAccepted(params["q"]) {
				return true
			}
		}
	}
	return false
}

// isAccepted reports whether a quality value of an Accept header is greater than 0. An invalid or
// missing value counts as 1.
func isAccepted(q string) bool {
	value, err := strconv.ParseFloat(q, 64)
	return err != nil || value > 0
}
