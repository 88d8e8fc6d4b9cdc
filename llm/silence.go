package llm

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// LimitSilence returns a model that fails with a [CodeTimeout] error if the wrapped model sends no
// chunk for longer than limit. The limit applies to the first chunk and between chunks. The time
// that the consumer needs to process a chunk does not count. Keep-alive data of a provider produces
// no chunk and does not reset the limit.
func LimitSilence(model Model, limit time.Duration) Model { return &limited{model, limit} }

// limited is the model that [LimitSilence] returns. It also forwards [MediaReader] to the wrapped
// model, because embedding the Model interface hides that method.
type limited struct {
	Model
	limit time.Duration // maximum silence before and between chunks
}

// Stream implements [Model].
func (l *limited) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) { callOnce(ctx, l.Model, req, l.limit, yield) }
}

// Unusable implements [MediaReader]. A wrapped model that is no MediaReader accepts every part.
func (l *limited) Unusable(model string, role Role, media Media) Unusable {
	if r, ok := l.Model.(MediaReader); ok {
		return r.Unusable(model, role, media)
	}
	return ""
}

// callOnce streams one completion of model and cancels it when the silence exceeds limit. It needs
// no error handling of its own: by the contract of [Model.Stream], the model ends with the cause of
// its ctx, and that cause is the timeout error.
func callOnce(ctx context.Context, model Model, req *Request, limit time.Duration, yield func(Chunk, error) bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(limit, func() {
		reason := fmt.Sprintf("received nothing for %s", limit)
		cancel(&Error{Code: CodeTimeout, Message: reason, Reason: reason})
	})
	defer silence.Stop()
	for chunk, err := range model.Stream(ctx, req) {
		// The timer is stopped while the consumer processes the chunk.
		silence.Stop()
		if !yield(chunk, err) {
			return
		}
		silence.Reset(limit)
	}
}
