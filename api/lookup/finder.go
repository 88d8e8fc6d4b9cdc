// Package lookup finds threads and runs in the log for the handlers of the API, and waits until the
// log shows what an answer has acknowledged.
package lookup

import (
	"context"
	"log/slog"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Finder finds threads and runs. It is safe for concurrent use.
type Finder struct {
	Log       *stream.Log
	Snapshots *snapshot.Store  // of Log
	Follower  *stream.Follower // of Log
	Logger    *slog.Logger
	// Closed ends when the server stops. Nothing is waited for after that.
	Closed context.Context
}

// CheckRun refuses a run without a record. after is the reader's cursor, or nil: that its thread
// was purged is reported first.
func (f *Finder) CheckRun(ctx context.Context, run stream.Run, after *stream.Cursor) error {
	known, err := f.Log.Known(ctx, run)
	if err == nil && !known {
		err = f.purgedOr(ctx, after, problem.NoRun(run))
	}
	return err
}

// CheckThread is CheckRun for a thread.
func (f *Finder) CheckThread(ctx context.Context, thread stream.Thread, after *stream.Cursor) error {
	known, err := f.Log.KnownThread(ctx, thread)
	if err == nil && !known {
		err = f.purgedOr(ctx, after, problem.NoThread(thread))
	}
	return err
}

// purgedOr reports that the record of a cursor was purged, or else another error.
func (f *Finder) purgedOr(ctx context.Context, after *stream.Cursor, otherwise error) error {
	if after == nil {
		return otherwise
	}
	if err := f.Log.Check(ctx, *after); err != nil {
		return err
	}
	return otherwise
}

// LastSegment returns the last segment of a run. A run ID may stand for several runs, one after the
// other: an input that answers the interrupts of a run under the same ID begins a segment.
func (f *Finder) LastSegment(ctx context.Context, run stream.Run) (stream.Run, error) {
	for n := 2; ; n++ {
		begun, err := f.Log.Begun(ctx, run.Segment(n))
		if err != nil || begun == nil {
			return run.Segment(n - 1), err
		}
	}
}

// Position reads a cursor ("" = none) and a protocol version (nil = none), of any transport. A
// cursor has its own profile.
func (f *Finder) Position(after string, version *string) (*stream.Cursor, stream.Profile, error) {
	var profile stream.Profile
	if version != nil {
		profile = stream.ProfileOf(*version)
	}
	if after == "" {
		return nil, profile, nil
	}
	cursor, err := f.Log.ParseCursor(after)
	return &cursor, profile, err
}
