package view

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// View shows one run, or the runs of a thread, to one reader: first the past from where the reader
// starts, then live records. It is used by one goroutine, and must be closed.
type View struct {
	tail   *stream.Tail
	reader reader
	// show makes the projection. The attempts that were superseded so far are known before the
	// first record of a run is shown. begun is the projection.
	show  func(superseded map[string]uint64) shown
	begun shown
	// first finds where the past begins.
	first func(ctx context.Context) (start, error)
	past  func() (*stream.Record, error, bool) // nil when the past is over
	stop  func()
	fresh bool
}

// shown is the projection of a run or of a thread.
type shown interface {
	// Add takes in the next record.
	Add(ctx context.Context, rec *stream.Record) ([]Frame, error)
	// prelude is called at the end of the past, and after later records until it returns frames.
	prelude(ctx context.Context) ([]Frame, error)
	// over reports, after the past, whether nothing will follow.
	over() bool
	// current is the run that is being shown.
	current() (stream.Run, bool)
}

// Viewer attaches readers to a log. It is safe for concurrent use.
type Viewer struct {
	Follower  *stream.Follower
	Snapshots *snapshot.Store
}

// Options tell where a reader of a run starts.
type Options struct {
	// After is the cursor after which to continue; nil = from the run's first record.
	After *stream.Cursor
	// Join is for a reader without a cursor: it gets what finished steps have said as snapshots,
	// and open messages from their beginning. Only the last of these events has a cursor. Join is
	// ignored with After.
	Join bool
	// Profile is the protocol generation; "" = that of the run's input. A cursor has its own.
	Profile stream.Profile
}

// Run attaches a reader to a run. No record that is written from now on is missed. The caller
// closes the view.
func (w Viewer) Run(run stream.Run, o Options) *View {
	v := &View{tail: w.Follower.Tail(run), reader: readerOf(o.Profile, o.After)}
	v.reader.joining = o.Join && o.After == nil
	v.first = func(ctx context.Context) (start, error) {
		if !v.reader.joining {
			return start{from: 1}, nil
		}
		return w.joinAt(ctx, w.Snapshots.Log().LaneSubject(run, stream.LaneMain))
	}
	v.show = func(superseded map[string]uint64) shown { return newProjection(w.Snapshots, run, v.reader, superseded) }
	return v
}

// ThreadOptions tell where a reader of a thread starts, and where it ends.
type ThreadOptions struct {
	// After is the cursor after which to continue; nil = join the active run or, if there is none,
	// the last one.
	After *stream.Cursor
	// Profile is the protocol generation; "" = that of the first shown run's input. A cursor has
	// its own.
	Profile stream.Profile
	// Follow continues with later runs. Without it the view ends after the active run, or at once
	// if there is none.
	Follow bool
}

// Thread attaches a reader to a thread. Each run is closed before the next one begins, and the
// conversation and the state with which a run begins follow its RUN_STARTED. No record that is
// written from now on is missed. The caller closes the view.
func (w Viewer) Thread(thread stream.Thread, o ThreadOptions) *View {
	v := &View{tail: w.Follower.ThreadTail(thread), reader: readerOf(o.Profile, o.After)}
	if o.After == nil {
		v.reader.joining, v.reader.followed = true, true
	}
	v.first = func(ctx context.Context) (start, error) { return w.startOf(ctx, thread, o.After) }
	v.show = func(superseded map[string]uint64) shown {
		return &threadProjection{store: w.Snapshots, thread: thread, reader: v.reader, superseded: superseded, follow: o.Follow}
	}
	return v
}

// SkipPast skips the past: the caller has read, after it made the view, that the log has no record
// of the run.
func (v *View) SkipPast() { v.fresh = true }

// At returns the sequence up to which the view has read.
func (v *View) At() uint64 { return v.tail.At() }

// Close ends the view.
func (v *View) Close() {
	if v.stop != nil {
		v.stop()
	}
	v.tail.Close()
}

// Profile returns the generation of the view; "" = the run's input has yet to tell.
func (v *View) Profile() stream.Profile { return v.reader.profile }

// Resumed reports whether the view begins after a cursor.
func (v *View) Resumed() bool { return v.reader.from != nil }

// Run returns the run that is being shown; ok is false between two runs of a thread.
func (v *View) Run() (run stream.Run, ok bool) {
	if v.begun == nil {
		return stream.Run{}, false
	}
	return v.begun.current()
}

// Next returns the next frames, or none if idle has passed without a record. Records without frames
// for the reader start idle again. Next returns every frame once, however slowly it is called. It
// returns io.EOF after the terminal event, and stream.ErrInvalidCursor if the cursor is not of this
// run or thread. After stream.ErrInterrupted, and failures of the log, a reader continues with the
// cursor of its last frame.
func (v *View) Next(ctx context.Context, idle time.Duration) ([]Frame, error) {
	if frames, err := v.NextPast(ctx); err != nil || frames != nil {
		return frames, err
	}
	for {
		records, err := v.tail.Next(ctx, idle)
		if err != nil || len(records) == 0 {
			return nil, err
		}
		frames, err := v.add(ctx, records...)
		if err != nil || len(frames) > 0 {
			return frames, err
		}
		if v.begun.over() {
			return nil, io.EOF
		}
	}
}

// NextPast returns the next frames of the past, and none at its end. It does not wait, and ends as
// Next does.
func (v *View) NextPast(ctx context.Context) ([]Frame, error) {
	if v.begun == nil {
		if err := v.begin(ctx); err != nil {
			return nil, err
		}
	}
	for v.past != nil {
		frames, err := v.nextPast(ctx)
		if err != nil || len(frames) > 0 {
			return frames, err
		}
	}
	if v.begun.over() {
		return nil, io.EOF
	}
	return nil, nil
}

func (v *View) nextPast(ctx context.Context) ([]Frame, error) {
	rec, err, ok := v.past()
	switch {
	case err != nil:
		return nil, err
	case ok:
		return v.begun.Add(ctx, rec)
	}
	v.stop()
	v.past, v.stop = nil, nil // a reader may stay for hours; the records need not
	return v.begun.prelude(ctx)
}

// add projects live records.
func (v *View) add(ctx context.Context, records ...*stream.Record) ([]Frame, error) {
	var frames []Frame
	for _, rec := range records {
		more, err := v.begun.Add(ctx, rec)
		if err != nil {
			return nil, err
		}
		frames = append(frames, more...)
		if v.begun.over() {
			break
		}
	}
	more, err := v.begun.prelude(ctx)
	return append(frames, more...), err
}

// begin makes the projection. The past is read as it is asked for.
func (v *View) begin(ctx context.Context) error {
	if v.fresh {
		v.begun = v.show(nil)
		return nil
	}
	first, err := v.first(ctx)
	if err != nil {
		return err
	}
	d := newSupersessions()
	v.begun = v.show(d.at)
	v.past, v.stop = iter.Pull2(v.runByRun(ctx, first, d))
	return nil
}

// start is where the past of a view begins. For a reader that joins a run which has ended, opening
// is the run's first record, and from its last one: the snapshots have the rest.
type start struct {
	opening *stream.Record // nil = it is not before from
	from    uint64
}
