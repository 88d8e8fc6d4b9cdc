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
// starts, then live records. The API makes one for each stream of a client, and sends the frames
// over SSE or WebSocket. A View is used by one goroutine, which closes it.
//
// It begins to read the log at the first call of Next or NextPast, and reads at the pace of the
// calls.
type View struct {
	tail *stream.Tail
	// reader is the reader as it was when the view was made. Its generation is not updated (see
	// Generation).
	reader reader
	// newProjection makes the projection, at the first read. It is given the superseded attempts;
	// those of a run are known before the first record of that run is shown, because pastByRun
	// fills the map first.
	newProjection func(superseded map[string]uint64) projector
	projection    projector // nil = nothing was read
	// findStart finds the record at which the past begins.
	findStart      func(ctx context.Context) (start, error)
	nextPastRecord func() (*stream.Record, error, bool) // nil when the past is over
	stopPast       func()                               // releases nextPastRecord; set with it
	skipPast       bool                                 // there is no past; see SkipPast
	admit          func(ctx context.Context) error      // see Admit; nil = every reader
	timestamps     bool                                 // events get the times of their records
	last           time.Time                            // of the last record that was projected
}

// projector is the projection of a run (Projection) or of a thread (threadProjection).
type projector interface {
	// Add projects the next record, and returns its frames.
	Add(ctx context.Context, rec *stream.Record) ([]Frame, error)
	// prelude is called at the end of the past, and again after later records until it returns
	// frames. It returns none for a reader that does not join.
	prelude(ctx context.Context) ([]Frame, error)
	// hasEnded reports, after the past, whether no later record has frames for the reader.
	hasEnded() bool
	// currentRun returns the run that is being shown; false = between two runs of a thread.
	currentRun() (stream.Run, bool)
}

// Viewer attaches readers to a log. It is safe for concurrent use. A process has one; it owns
// neither the follower nor the store.
type Viewer struct {
	Follower  *stream.Follower
	Snapshots *snapshot.Store
}

// Options tell where a reader of a run starts.
type Options struct {
	// After is the cursor after which to continue; nil = from the run's first record.
	After *stream.Cursor
	// Join is for a reader without a cursor: it gets the effect of finished steps as snapshots, and
	// open messages from their beginning (join.go). Only the last of these events has a cursor.
	// Join is ignored with After.
	Join bool
	// Generation is the protocol generation; "" = that of the run's input. A cursor has its own.
	Generation stream.Generation
	// Timestamps sets the member timestamp of each event to the time of its record.
	Timestamps bool
}

// Run attaches a reader to a run, which need not have begun. The view misses no record that is
// written after Run returns. Run does not read the log, so an invalid cursor is reported by Next.
// The caller closes the view.
func (v Viewer) Run(run stream.Run, o Options) *View {
	view := &View{tail: v.Follower.Tail(run), reader: readerOf(o.Generation, o.After), timestamps: o.Timestamps}
	view.reader.joining = o.Join && o.After == nil
	view.findStart = func(ctx context.Context) (start, error) {
		if !view.reader.joining {
			return start{from: 1}, nil
		}
		return v.findJoinStart(ctx, v.Snapshots.Log().LaneSubject(run, stream.LaneMain))
	}
	view.newProjection = func(superseded map[string]uint64) projector {
		return newProjection(v.Snapshots, run, view.reader, superseded)
	}
	return view
}

// ThreadOptions tell where a reader of a thread starts, and where it ends.
type ThreadOptions struct {
	// After is the cursor after which to continue; nil = join the active run or, if there is none,
	// the last one.
	After *stream.Cursor
	// Generation is the protocol generation; "" = that of the first shown run's input. A cursor has
	// its own.
	Generation stream.Generation
	// Timestamps are those of Options.
	Timestamps bool
	// IncludeLater continues with later runs. Without it the view ends after the active run, or at
	// once if there is none.
	IncludeLater bool
}

// Thread attaches a reader to a thread. Each run is closed before the next one begins, and the
// conversation and the state with which a run begins follow its RUN_STARTED. The view misses no
// record that is written after Thread returns. The caller closes the view.
func (v Viewer) Thread(thread stream.Thread, o ThreadOptions) *View {
	view := &View{tail: v.Follower.ThreadTail(thread), reader: readerOf(o.Generation, o.After), timestamps: o.Timestamps}
	if o.After == nil {
		view.reader.joining, view.reader.spectator = true, true
	}
	view.findStart = func(ctx context.Context) (start, error) { return v.findThreadStart(ctx, thread, o.After) }
	view.newProjection = func(superseded map[string]uint64) projector {
		return &threadProjection{store: v.Snapshots, thread: thread, reader: view.reader, superseded: superseded, includeLater: o.IncludeLater}
	}
	return view
}

// SkipPast has the view skip the past. The caller must have read, after it made the view, that the
// log has no record of the run. Call it before Next.
func (v *View) SkipPast() { v.skipPast = true }

// At returns the sequence up to which the view has read, or skipped, the records.
func (v *View) At() uint64 { return v.tail.At() }

// Close ends the view and detaches it from the follower. Call it exactly once.
func (v *View) Close() {
	if v.stopPast != nil {
		v.stopPast()
	}
	v.tail.Close()
}

// Generation returns the generation that the reader was attached with; "" = the input of the first
// shown run decides it.
func (v *View) Generation() stream.Generation { return v.reader.generation }

// Resumed reports whether the view begins after a cursor.
func (v *View) Resumed() bool { return v.reader.from != nil }

// Run returns the run that is being shown; ok is false between two runs of a thread.
func (v *View) Run() (run stream.Run, ok bool) {
	if v.projection == nil {
		return stream.Run{}, false
	}
	return v.projection.currentRun()
}

// Next returns the next frames. It waits for records, and returns none and no error after idle has
// passed without any; records without frames for the reader start idle again. Next returns every
// frame once, however slowly it is called.
//
// It returns io.EOF after the terminal event, and stream.ErrInvalidCursor if the cursor is not of
// this run or thread. After stream.ErrInterrupted, and after failures of the log, a client
// continues on a new view with the cursor of its last frame.
func (v *View) Next(ctx context.Context, idle time.Duration) ([]Frame, error) {
	frames, err := v.next(ctx, idle)
	return v.admitted(ctx, frames, err)
}

// next is Next for any reader.
func (v *View) next(ctx context.Context, idle time.Duration) ([]Frame, error) {
	if frames, err := v.nextPast(ctx); err != nil || frames != nil {
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
		if v.projection.hasEnded() {
			return nil, io.EOF
		}
	}
}

// NextPast returns the next frames of the past, and none at its end. It does not wait for new
// records. Its errors are those of Next.
func (v *View) NextPast(ctx context.Context) ([]Frame, error) {
	frames, err := v.nextPast(ctx)
	return v.admitted(ctx, frames, err)
}

// Admit sets a check that the view makes before it returns frames, each time. Its error is returned
// instead of the frames. A reader may attach before the thread exists, and the access to the thread
// may change while the reader reads.
func (v *View) Admit(check func(ctx context.Context) error) { v.admit = check }

// admitted returns frames, or the error of the check.
func (v *View) admitted(ctx context.Context, frames []Frame, err error) ([]Frame, error) {
	if err != nil || len(frames) == 0 || v.admit == nil {
		return frames, err
	}
	if err := v.admit(ctx); err != nil {
		return nil, err
	}
	return frames, nil
}

// nextPast is NextPast for any reader.
func (v *View) nextPast(ctx context.Context) ([]Frame, error) {
	if v.projection == nil {
		if err := v.begin(ctx); err != nil {
			return nil, err
		}
	}
	for v.nextPastRecord != nil {
		frames, err := v.projectPast(ctx)
		if err != nil || len(frames) > 0 {
			return frames, err
		}
	}
	if v.projection.hasEnded() {
		return nil, io.EOF
	}
	return nil, nil
}

// projectPast projects one record of the past. At the end of the past it releases the records and
// returns the prelude of a joining reader.
func (v *View) projectPast(ctx context.Context) ([]Frame, error) {
	rec, err, ok := v.nextPastRecord()
	switch {
	case err != nil:
		return nil, err
	case ok:
		return v.project(ctx, rec)
	}
	v.stopPast()
	v.nextPastRecord, v.stopPast = nil, nil // the view may live for hours; free the records of the past
	frames, err := v.projection.prelude(ctx)
	return v.stamp(frames, v.last), err
}

// project projects one record.
func (v *View) project(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	frames, err := v.projection.Add(ctx, rec)
	v.last = rec.Time
	return v.stamp(frames, rec.Time), err
}

// add projects live records, up to the one that ends what is shown. A reader that joined before its
// run began gets the prelude with the first of them.
func (v *View) add(ctx context.Context, records ...*stream.Record) ([]Frame, error) {
	var frames []Frame
	for _, rec := range records {
		added, err := v.project(ctx, rec)
		if err != nil {
			return nil, err
		}
		frames = append(frames, added...)
		if v.projection.hasEnded() {
			break
		}
	}
	// Live records may reach a joining reader whose run had not begun at the end of the past.
	added, err := v.projection.prelude(ctx)
	return append(frames, v.stamp(added, v.last)...), err
}

// begin makes the projection and opens the past, which projectPast reads record by record.
func (v *View) begin(ctx context.Context) error {
	if v.skipPast {
		v.projection = v.newProjection(nil)
		return nil
	}
	first, err := v.findStart(ctx)
	if err != nil {
		return err
	}
	s := newSupersessions()
	v.projection = v.newProjection(s.supersededAt)
	v.nextPastRecord, v.stopPast = iter.Pull2(v.pastByRun(ctx, first, s))
	return nil
}

// start is where the past of a view begins. For a reader that joins a run which has ended, opening
// is the run's first record, and from its last one: the snapshots have the rest.
type start struct {
	opening *stream.Record // nil = it is not before from
	from    uint64
}
