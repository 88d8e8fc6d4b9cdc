package wire

import (
	"context"

	"github.com/perdure/perdure/llm"
)

// Events iterates over the server-sent events of a response. The stream decoders of the OpenAI and
// Anthropic SDKs implement it.
type Events[E any] interface {
	// Next reads the next event. It returns false at the end of the stream or on an error.
	Next() bool
	// Event returns the event that Next has read.
	Event() E
	// Err returns why the stream ended; nil = regular end of the body.
	Err() error
}

// Reply converts the events of one completion to chunks. Each provider API has one implementation.
// One goroutine uses it.
type Reply[E any] interface {
	// Read processes one event.
	Read(event E) error
	// Over reports whether Read has processed the last event of the completion, so that the
	// connection can be closed without reading on.
	Over() bool
	// End ends the completion after the last event. err is why the stream ended, nil for a regular
	// end. End returns an error if the completion is incomplete.
	End(err error) error
	// Take returns the chunks since the last Take. They are valid until the next Read or End.
	Take() []llm.Chunk
}

// Stream reads the response to its end and yields its chunks. It returns nil after success, and
// also if the consumer breaks out of the range; the caller must not use yield after that. An error
// is not yielded: the caller does that.
func Stream[E any](ctx context.Context, events Events[E], reply Reply[E], yield func(llm.Chunk, error) bool) error {
	for !reply.Over() && events.Next() {
		// Events that are already buffered must not be delivered after a cancel.
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

// deliver yields the chunks. It returns false if the consumer broke out of the range.
func deliver(chunks []llm.Chunk, yield func(llm.Chunk, error) bool) bool {
	for _, chunk := range chunks {
		if !yield(chunk, nil) {
			return false
		}
	}
	return true
}
