package api

import (
	"context"
	"errors"
	"io"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// A run id may stand for several runs, one behind the other: those who answer the questions of a run
// under its own id begin a segment of it.

// latest is the last segment of a run.
func (s *Server) latest(ctx context.Context, run stream.Run) (stream.Run, error) {
	for n := 2; ; n++ {
		begun, err := s.Log.Begun(ctx, run.Segment(n))
		if err != nil || begun == nil {
			return run.Segment(n - 1), err
		}
	}
}

// segmentAt is the segment of a run that a reader is to be shown, and from where: who joins has the last,
// others the one with their cursor, or, if they have all of that, the next from its start.
func (s *Server) segmentAt(ctx context.Context, run stream.Run, o view.Options) (stream.Run, view.Options, error) {
	if o.Join {
		run, err := s.latest(ctx, run)
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
		case errors.Is(err, stream.ErrInvalidCursor): // it is of a later one
		default:
			return here, o, err
		}
	}
}

// probe looks whether a segment, which has ended, has something for a reader: io.EOF = nothing more.
func (s *Server) probe(ctx context.Context, run stream.Run, o view.Options) error {
	view := s.views.Run(run, o)
	defer view.Close()
	_, err := view.NextPast(ctx)
	return err
}
