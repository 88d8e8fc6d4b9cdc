package streams

import "github.com/perdure/perdure/stream/view"

// Transport sends the frames of one view to one client. One goroutine at a time uses it. An
// implementation may buffer, but Send returns only after the frames were written to the connection,
// so a slow client slows its own view and nothing else.
type Transport interface {
	// Send writes frames in order, and flushes them. It blocks while the client does not read, and
	// fails with live.ErrSlow if that takes too long. After an error the stream ends.
	Send(frames []view.Frame) error
}
