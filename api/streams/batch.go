package streams

import (
	"context"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/stream/view"
)

// Batch has frames of a stream that the client has not read, and the shared memory that they take.
// One goroutine uses it. The nil Batch is empty.
type Batch struct {
	frames []view.Frame
	memory *quota.Portion
}

// clientBuffer is the part of the frames for a client that takes no shared memory, in bytes, in
// addition to that of any answer.
const clientBuffer = 192 << 10

// newBatch returns an empty batch of a stream of the caller.
func (s *Streams) newBatch(ctx context.Context) *Batch {
	caller, _ := auth.From(ctx)
	return &Batch{memory: s.Answers.Portion(caller)}
}

// put puts frames into an empty batch, with the memory for them. Errors: 429 quota_exceeded, 503
// node_full; the batch then stays empty.
func (b *Batch) put(frames []view.Frame) error {
	size := -clientBuffer
	for _, f := range frames {
		size += len(f.Event)
	}
	if err := b.memory.Grow(size); err != nil {
		return problem.Of(problem.FullIf(err, "large events that clients have not read"))
	}
	b.frames = frames
	return nil
}

// Release empties the batch.
func (b *Batch) Release() {
	if b != nil {
		b.memory.Release()
		b.frames = nil
	}
}
