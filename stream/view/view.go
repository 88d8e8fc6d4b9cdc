package view

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// View shows one run, or the runs of a thread, to one reader: the past from where the reader starts,
// then live. It is used by one goroutine.
type View struct {
	tail   *stream.Tail
	reader reader
	// show makes the projection, which looks up in dead which attempts died: that is known of a run before
	// its first record is shown. begun is what it made.
	show  func(dead map[string]uint64) shown
	begun shown
	// first is where the past begins.
	first func(ctx context.Context) (start, error)
	past  func() (*stream.Record, error, bool) // nil when the past is over
	stop  func()
	fresh bool
}

// shown is what a reader sees of the records of a view.
type shown interface {
	// Add takes in the next record.
	Add(ctx context.Context, rec *stream.Record) ([]Frame, error)
	// prelude is called when the past is over, and behind later records until it has shown something.
	prelude(ctx context.Context) ([]Frame, error)
	// over tells, when the past is over, whether nothing will follow.
	over() bool
	// current is the run that is being shown.
	current() (stream.Run, bool)
}

// Viewer attaches readers to a log. It is safe for concurrent use.
type Viewer struct {
	Follower  *stream.Follower
	Snapshots *snapshot.Store
}

// Options say where a reader of a run starts.
type Options struct {
	// After is the cursor behind which to go on; nil = from the run's start.
	After *stream.Cursor
	// Join is for a reader that has nothing, or an old list: what the run has said so far comes as
	// snapshots, and what is open from its start. The events up to there have no cursors, except for
	// the last. It does not go together with After.
	Join bool
	// Profile is how to speak; empty = as the run's own input asked for. A cursor brings its own.
	Profile stream.Profile
}

// Run attaches a reader to a run. Nothing written from now on is missed. Close must be called.
func (w Viewer) Run(run stream.Run, o Options) *View {
	v := &View{tail: w.Follower.Tail(run), reader: readerOf(o.Profile, o.After)}
	v.reader.joining = o.Join && o.After == nil
	v.first = func(ctx context.Context) (start, error) {
		if !v.reader.joining {
			return start{from: 1}, nil
		}
		return w.joinAt(ctx, w.Snapshots.Log().LaneSubject(run, stream.LaneMain))
	}
	v.show = func(dead map[string]uint64) shown { return newProjection(w.Snapshots, run, v.reader, dead) }
	return v
}

// ThreadOptions say where a reader of a thread starts, and where it ends.
type ThreadOptions struct {
	// After is the cursor behind which to go on. Without one the reader joins the active run or, if
	// none is, is shown the last one in snapshots.
	After *stream.Cursor
	// Profile is how to speak; empty = as the input of the first run that is shown asked for. A cursor
	// brings its own.
	Profile stream.Profile
	// Follow goes on with run after run; else the view ends behind the run that is active, or at once
	// if none is.
	Follow bool
}

// Thread attaches a reader to a thread. Each run is closed before the next one begins; behind the
// RUN_STARTED of one that begins stand the conversation and the state that it begins with. Nothing
// written from now on is missed. Close must be called.
func (w Viewer) Thread(thread stream.Thread, o ThreadOptions) *View {
	v := &View{tail: w.Follower.ThreadTail(thread), reader: readerOf(o.Profile, o.After)}
	if o.After == nil {
		v.reader.joining, v.reader.followed = true, true
	}
	v.first = func(ctx context.Context) (start, error) { return w.startOf(ctx, thread, o.After) }
	v.show = func(dead map[string]uint64) shown {
		return &threadProjection{store: w.Snapshots, thread: thread, reader: v.reader, dead: dead, follow: o.Follow}
	}
	return v
}

// SkipPast spares the look for a past: the caller has seen, since the view was made, that the log
// has nothing of the run.
func (v *View) SkipPast() { v.fresh = true }

// At is the sequence up to which the view has read.
func (v *View) At() uint64 { return v.tail.At() }

// Close ends the view.
func (v *View) Close() {
	if v.stop != nil {
		v.stop()
	}
	v.tail.Close()
}

// Profile is how the view speaks, or empty where the run's own input has yet to tell.
func (v *View) Profile() stream.Profile { return v.reader.profile }

// Resumed tells whether the view begins behind a cursor.
func (v *View) Resumed() bool { return v.reader.from != nil }

// Run returns the run that is being shown; ok is false while a thread is between runs.
func (v *View) Run() (run stream.Run, ok bool) {
	if v.begun == nil {
		return stream.Run{}, false
	}
	return v.begun.current()
}

// Next returns the frames that follow, or none after idle has passed without a record. A record that shows nothing to
// the reader starts idle again. Next returns io.EOF after the terminal event. ErrInterrupted and failures of the log
// are resumable with the cursor of the last frame. However slowly it is called, it returns every frame once. A cursor that is not of this run, or thread, is ErrInvalidCursor.
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

// NextPast returns the next frames of what the log had when the view was first asked, and none when
// that is all. It waits for nothing, and ends as Next does.
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

// begin makes the projection and has the past read as it is asked for.
func (v *View) begin(ctx context.Context) error {
	if v.fresh {
		v.begun = v.show(nil)
		return nil
	}
	first, err := v.first(ctx)
	if err != nil {
		return err
	}
	d := newDeaths()
	v.begun = v.show(d.dead)
	v.past, v.stop = iter.Pull2(v.runByRun(ctx, first, d))
	return nil
}
