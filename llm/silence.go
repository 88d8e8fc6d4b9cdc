package llm

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// LimitSilence returns a model whose calls end with [CodeTimeout] when nothing comes from it for as
// long as limit: neither a first chunk nor a next one. The time in which the consumer deals with a
// chunk does not count. What providers send to keep a connection open is no chunk and does not
// count either.
func LimitSilence(model Model, limit time.Duration) Model { return &limited{model, limit} }

// limited is a model with a limit of silence. It implements [MediaReader] for the model that it
// limits.
type limited struct {
	Model
	limit time.Duration
}

func (l *limited) Stream(ctx context.Context, req *Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) { callOnce(ctx, l.Model, req, l.limit, yield) }
}

func (l *limited) Unusable(model string, role Role, media Media) Unusable {
	if r, ok := l.Model.(MediaReader); ok {
		return r.Unusable(model, role, media)
	}
	return ""
}

// callOnce returns one call. The model ends with the cause of its context, which is the error that
// is due.
func callOnce(ctx context.Context, model Model, req *Request, limit time.Duration, yield func(Chunk, error) bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(limit, func() {
		reason := fmt.Sprintf("nothing came for %s", limit)
		cancel(&Error{Code: CodeTimeout, Message: reason, Reason: reason})
	})
	defer silence.Stop()
	for chunk, err := range model.Stream(ctx, req) {
		silence.Stop()
		if !yield(chunk, err) {
			return
		}
		silence.Reset(limit)
	}
}
