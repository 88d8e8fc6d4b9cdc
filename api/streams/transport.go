package streams

import "github.com/perdure/perdure/stream/view"

// Transport sends the frames of one view to one client. It fails if the client does not take them
// in time.
type Transport interface {
	// Send writes frames, in order, and flushes them.
	Send(frames []view.Frame) error
}
