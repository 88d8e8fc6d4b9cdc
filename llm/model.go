package llm

import (
	"context"
	"iter"
)

// Model streams completions.
//
// Implementations are safe for concurrent use and never retry.
type Model interface {
	// Stream asks for one completion. Nothing is sent before the sequence is
	// ranged over, and each range is a new call to the provider.
	//
	// The sequence ends after a [Finish] chunk or with a non-nil error, which
	// comes with a nil chunk. The error is always an [*Error], or the cause of
	// ctx when ctx ended. Breaking out of the range aborts the call. The request
	// must not change while the sequence is in use.
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// ModelFunc makes a function a [Model].
type ModelFunc func(ctx context.Context, req *Request) iter.Seq2[Chunk, error]

// Stream calls f.
func (f ModelFunc) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return f(ctx, req)
}
