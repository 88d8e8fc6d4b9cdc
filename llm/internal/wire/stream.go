package wire

import (
	"context"

	"github.com/perdure/perdure/llm"
)

// Events are the events of a response, in the form of the SDKs' decoders.
type Events[E any] interface {
	Next() bool
	Event() E
	Err() error
}

// Reply turns the events of one completion into chunks.
type Reply[E any] interface {
	// Read takes one event.
	Read(event E) error
	// Over reports whether the last event has come.
	Over() bool
	// End closes the completion at the end of the stream; err is why it ended, if that was not
	// regular.
	End(err error) error
	// Take returns the chunks since the last Take, valid until the next Read.
	Take() []llm.Chunk
}

// Stream reads a response to its end and yields its chunks. It returns nil when the consumer stops
// the range, after which yield must not be called again.
func Stream[E any](ctx context.Context, events Events[E], reply Reply[E], yield func(llm.Chunk, error) bool) error {
	for !reply.Over() && events.Next() {
		// Buffered events must not outlive a cancel.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := reply.Read(events.Event()); err != nil {
			return err
		}
		if !deliver(reply.Take(), yield) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := reply.End(events.Err()); err != nil {
		return err
	}
	deliver(reply.Take(), yield)
	return nil
}

// deliver yields chunks, and reports whether the consumer wants more.
func deliver(chunks []llm.Chunk, yield func(llm.Chunk, error) bool) bool {
	for _, chunk := range chunks {
		if !yield(chunk, nil) {
			return false
		}
	}
	return true
}
