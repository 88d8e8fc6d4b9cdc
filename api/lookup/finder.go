// Package lookup finds threads and runs in the log for the handlers of the API, and waits until the
// log, or the inbox, shows what an acknowledgement promised. It reads only.
package lookup

import (
	"context"
	"log/slog"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Finder finds threads and runs. All fields are required, and owned by the Server. It has no state
// of its own, and is safe for concurrent use.
type Finder struct {
	Log       *stream.Log
	Snapshots *snapshot.Store  // of Log
	Follower  *stream.Follower // of Log
	Logger    *slog.Logger
	// Closed ends when the server drains. Waits end then.
	Closed context.Context
}

// CheckRun returns a 404 if the log has no record of a run. after is the reader's cursor, or nil. A
// cursor whose record was purged is reported first, as stream.ErrGone, because it tells the reader
// that the thread was deleted.
func (f *Finder) CheckRun(ctx context.Context, run stream.Run, after *stream.Cursor) error {
	found, err := f.Log.HasRun(ctx, run)
	if err == nil && !found {
		err = f.goneOr(ctx, run.Thread, after, problem.NoRun(run))
	}
	return err
}

// CheckThread returns a 404 if the log has no record of a thread, or stream.ErrGone like CheckRun.
func (f *Finder) CheckThread(ctx context.Context, thread stream.Thread, after *stream.Cursor) error {
	found, err := f.Log.HasThread(ctx, thread)
	if err == nil && !found {
		err = f.goneOr(ctx, thread, after, problem.NoThread(thread))
	}
	return err
}

// goneOr returns stream.ErrGone if the record of a thread's cursor was purged, and otherwise the error
// that it was given.
func (f *Finder) goneOr(ctx context.Context, thread stream.Thread, after *stream.Cursor, otherwise error) error {
	if after == nil {
		return otherwise
	}
	if err := f.Log.Check(ctx, thread, *after); err != nil {
		return err
	}
	return otherwise
}

// LastSegment returns the last segment of a run. An input that answers the interrupts of a run
// under the same run ID begins a segment, so a run ID may stand for several runs, one after the
// other. A run without a second segment is returned unchanged, even if the log does not have it.
func (f *Finder) LastSegment(ctx context.Context, run stream.Run) (stream.Run, error) {
	for n := 2; ; n++ {
		opening, err := f.Log.OpeningOf(ctx, run.Segment(n))
		if err != nil || opening == nil {
			return run.Segment(n - 1), err
		}
	}
}

// CursorAndGeneration parses a cursor ("" = none) and a protocol version (nil = none), of any
// transport. It returns nil without a cursor. The generation counts only for readers without a
// cursor, because a cursor contains its own.
func (f *Finder) CursorAndGeneration(after string, version *string) (*stream.Cursor, stream.Generation, error) {
	var generation stream.Generation
	if version != nil {
		generation = stream.GenerationOf(*version)
	}
	if after == "" {
		return nil, generation, nil
	}
	cursor, err := f.Log.ParseCursor(after)
	return &cursor, generation, err
}
