package api

import (
	"context"
	"errors"
	"io"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// segmentAt returns the segment of a run that a reader is shown, and the position in it: a reader
// that joins gets the last one. Others get the one of their cursor or, if they have all of it, the
// next from its start.
func (s *Server) segmentAt(ctx context.Context, run stream.Run, o view.Options) (stream.Run, view.Options, error) {
	if o.Join {
		run, err := s.find.LastSegment(ctx, run)
		return run, o, err
	}
	for n := 1; ; n++ {
		here := run.Segment(n)
		next, err := s.Log.Begun(ctx, run.Segment(n+1))
		if err != nil || next == nil {
			return here, o, err
		}
		switch err := s.probe(ctx, here, o); {
		case errors.Is(err, io.EOF) && o.After != nil:
			o.Profile, o.After = o.After.Profile, nil
		case errors.Is(err, stream.ErrInvalidCursor): // the cursor is of a later segment
		default:
			return here, o, err
		}
	}
}

// probe reads from a segment, which has ended, after a reader's cursor: io.EOF = there is nothing
// more.
func (s *Server) probe(ctx context.Context, run stream.Run, o view.Options) error {
	view := s.views.Run(run, o)
	defer view.Close()
	_, err := view.NextPast(ctx)
	return err
}
