package api

import (
	"context"
	"errors"
	"io"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// segmentAt returns the segment of a run that a reader of GET events, or of a subscribe frame, is
// shown, and the options for its view. A run ID has several segments if the client answered
// interrupts under the same ID; to the reader they are one run.
//
// A reader that joins gets the last segment. Another reader gets the segment of its cursor or,
// without a cursor, the first one. A reader whose cursor is at the end of a segment gets the next
// segment from its start. The error stream.ErrInvalidCursor means that the cursor belongs to no
// segment.
func (s *Server) segmentAt(ctx context.Context, run stream.Run, o view.Options) (stream.Run, view.Options, error) {
	if o.Join {
		run, err := s.finder.LastSegment(ctx, run)
		return run, o, err
	}
	for n := 1; ; n++ {
		segment := run.Segment(n)
		next, err := s.Log.OpeningOf(ctx, run.Segment(n+1))
		// The last segment is not probed: it may be active, and its view judges the cursor.
		if err != nil || next == nil {
			return segment, o, err
		}
		switch err := s.probe(ctx, segment, o); {
		case errors.Is(err, io.EOF) && o.After != nil:
			o.Generation, o.After = o.After.Generation, nil
		case errors.Is(err, stream.ErrInvalidCursor): // the cursor is of a later segment
		default:
			return segment, o, err
		}
	}
}

// probe reads from a segment after a reader's cursor. The segment has ended, because a later one
// exists. The error is io.EOF if nothing follows the cursor, and stream.ErrInvalidCursor if the
// cursor is not in the segment. It reads only the first frames and does not wait.
func (s *Server) probe(ctx context.Context, run stream.Run, o view.Options) error {
	view := s.views.Run(run, o)
	defer view.Close()
	_, err := view.NextPast(ctx)
	return err
}
