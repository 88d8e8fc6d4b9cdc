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

// binary is the transport of a response in AG-UI's binary format. It has no heartbeats: the format
// has no frame that clients skip. They refuse an empty frame, and refuse an unknown event or warn
// about it. TCP keep-alive finds clients that are gone.
type binary struct{ w *live.Writer }

func (b binary) Send(frames []view.Frame) error {
	for _, f := range frames {
		e, err := agui.Decode(f.Event)
		if err != nil {
			return fmt.Errorf("api: %s: %w", f.Type, err)
		}
		to := b.w.Buffer()
		*to, err = protobuf.AppendFrame(*to, e)
		if err != nil && !errors.Is(err, protobuf.ErrUnknownEvent) { // a client would ignore it
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

// WantsBinary reports whether a request names the binary format. The specification would use it for
// */* too; but then the output of curl would be unreadable.
func WantsBinary(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			media, params, err := mime.ParseMediaType(part)
			if err == nil && media == protobuf.MediaType && admits(params["q"]) {
				return true
			}
		}
	}
	return false
}

// admits reports whether a quality value is greater than 0. An invalid value counts as missing.
func admits(q string) bool {
	value, err := strconv.ParseFloat(q, 64)
	return err != nil || value > 0
}
