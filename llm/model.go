package llm

import (
	"context"
	"iter"
)

// Model streams completions of a language model. A provider package implements it; [LimitSilence]
// and other wrappers decorate it.
//
// Implementations are safe for concurrent use and never retry.
type Model interface {
	// Stream requests one completion. It sends nothing before the caller ranges over the sequence,
	// and each range is a separate call to the provider.
	//
	// The sequence ends after a [Finish] chunk, or with a non-nil error and a nil chunk. The error
	// is an [*Error], or the cause of ctx if ctx ended. Breaking out of the range aborts the call.
	// The caller must not change the request while it ranges over the sequence.
	Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error]
}

// ModelFunc adapts a function to the [Model] interface. The function must follow the rules of
// [Model.Stream].
type ModelFunc func(ctx context.Context, req *Request) iter.Seq2[Chunk, error]

// Stream calls f.
func (f ModelFunc) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return f(ctx, req)
}
