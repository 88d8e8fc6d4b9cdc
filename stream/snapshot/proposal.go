package snapshot

import (
	"context"

	"github.com/perdure/perdure/stream"
)

// readInput returns the proposed input with a sequence, from the records of this folder or from the
// log.
func (f *folder) readInput(ctx context.Context, seq uint64) (*stream.Input, error) {
	rec := f.proposals[seq]
	if rec == nil {
		return f.log.Input(ctx, seq)
	}
	var in stream.Input
	if err := rec.Result(ctx, &in); err != nil {
		return nil, err
	}
	return &in, nil
}

// readDecision returns the proposed decision with a sequence, from the records of this folder or
// from the log.
func (f *folder) readDecision(ctx context.Context, seq uint64) (*stream.Decision, error) {
	rec := f.proposals[seq]
	if rec == nil {
		return f.log.Decision(ctx, seq)
	}
	var d stream.Decision
	if err := rec.Result(ctx, &d); err != nil {
		return nil, err
	}
	return &d, nil
}
