package client

import (
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/internal/transport/eventsource"
)

// TooLargeError reports a response, or a frame of a stream, that is larger than the client accepts.
type TooLargeError struct {
	Limit int // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("client: the server sent more than %d bytes in one response or event", e.Limit)
}

// FrameError reports a frame of a stream that this version of the client cannot decode.
type FrameError struct {
	Err error
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("client: an event is not valid: %v", e.Err)
}

func (e *FrameError) Unwrap() error { return e.Err }

// frame is a server-sent event that has data.
type frame struct {
	id   string
	data []byte
}

// frames parses a stream of server-sent events. It drops an incomplete frame at the end of a
// connection: after a reconnect the server sends it again.
type frames struct{ reader *eventsource.Reader }

// newFrames returns a parser for one connection. limit bounds each frame, in bytes.
func newFrames(r io.Reader, limit int) frames { return frames{eventsource.NewReader(r, limit)} }

// next returns the next frame. It fails with io.EOF at the end of the connection, even within a
// frame, and with a *TooLargeError.
func (s frames) next() (frame, error) {
	f, err := s.reader.Next()
	if tooLarge, ok := errors.AsType[*eventsource.TooLargeError](err); ok {
		return frame{}, &TooLargeError{tooLarge.Limit}
	}
	return frame{f.ID, f.Data}, err
}
