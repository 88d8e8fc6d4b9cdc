package stream

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// scanBytes bounds how much of a run's past a view keeps between its two passes over it; what is
// larger is read twice.
const scanBytes = 4 << 20

// View shows one run to one reader: the run's past from where the reader starts, then live, ending
// with the run. It is used by one goroutine.
type View struct {
	tail    *Tail
	project *Projection
	past    func() (*Record, error, bool) // nil when the past is over
	stop    func()
	from    *Cursor
	profile Profile
	fresh   bool
}

// ViewOptions say where a reader starts.
type ViewOptions struct {
	// After is the cursor behind which to go on; nil = from the run's start.
	After *Cursor
	// Profile is how to speak; empty = as the run's own input asked for. A cursor brings its own.
	Profile Profile
}

// View attaches a reader to a run. Nothing written from now on is missed. Close must be called.
func (f *Follower) View(run Run, o ViewOptions) *View {
	return &View{tail: f.Tail(run), from: o.After, profile: o.Profile}
}

// SkipPast spares the look for a past: the caller has seen, since the view was made, that the log
// has nothing of the run.
func (v *View) SkipPast() { v.fresh = true }

// Close ends the view.
func (v *View) Close() {
	if v.stop != nil {
		v.stop()
	}
	v.tail.Close()
}

// Profile is how the view speaks, or empty where the run's own input has yet to tell.
func (v *View) Profile() Profile {
	if v.from != nil {
		return v.from.Profile
	}
	return v.profile
}

// Resumed tells whether the view begins behind a cursor.
func (v *View) Resumed() bool { return v.from != nil }

// Next returns the frames that follow, or none after idle has passed without any. It ends with
// io.EOF behind the terminal event; ErrBehind and failures of the log are resumable with the cursor
// of the last frame.
func (v *View) Next(ctx context.Context, idle time.Duration) ([]Frame, error) {
	if v.project == nil {
		if err := v.begin(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if v.project.terminal {
			return nil, io.EOF
		}
		records, err := v.records(ctx, idle)
		if err != nil || len(records) == 0 {
			return nil, err
		}
		var frames []Frame
		for _, rec := range records {
			more, err := v.project.add(ctx, rec)
			if err != nil {
				return nil, err
			}
			frames = append(frames, more...)
		}
		if len(frames) > 0 {
			return frames, nil
		}
	}
}

// records returns the next records, past ones first.
func (v *View) records(ctx context.Context, idle time.Duration) ([]*Record, error) {
	if v.past != nil {
		rec, err, ok := v.past()
		if err != nil {
			return nil, err
		}
		if ok {
			return []*Record{rec}, nil
		}
		v.stop()
		v.past, v.stop = nil, nil // a reader may stay for hours; the records need not
	}
	return v.tail.Next(ctx, idle)
}

// begin looks over the run's past: attempts that died in it are not to be shown, so which ones did
// must be known before the first frame.
func (v *View) begin(ctx context.Context) error {
	if v.fresh {
		v.project = newProjection(v.tail.follower.log, v.tail.run, v.profile, v.from, nil)
		return nil
	}
	var (
		deaths = newDeaths()
		kept   []*Record
		bytes  int
		last   uint64
	)
	for rec, err := range v.tail.Past(ctx) {
		if err != nil {
			return err
		}
		deaths.add(rec)
		last = rec.Seq
		if bytes += rec.size; bytes <= scanBytes {
			kept = append(kept, rec)
		} else {
			kept = nil
		}
	}
	v.project = newProjection(v.tail.follower.log, v.tail.run, v.profile, v.from, deaths.dead)
	v.past, v.stop = iter.Pull2(v.again(ctx, kept, last))
	return nil
}

// again is the second pass over the past.
func (v *View) again(ctx context.Context, kept []*Record, last uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		if kept != nil || last == 0 {
			for _, rec := range kept {
				if !yield(rec, nil) {
					return
				}
			}
			return
		}
		l := v.tail.follower.log
		for rec, err := range l.records(ctx, l.runSubject(v.tail.run)+".>", 1, last) {
			if err == nil && rec.Lane.IsProposal() {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// deaths finds the attempts that were superseded.
type deaths struct {
	dead    map[string]uint64
	writers map[Lane]string
}

func newDeaths() *deaths {
	return &deaths{dead: map[string]uint64{}, writers: map[Lane]string{}}
}

func (d *deaths) add(rec *Record) {
	holder := d.writers[rec.Lane]
	switch rec.Kind {
	case KindAttempt:
		if holder != "" && holder != rec.Writer {
			d.dead[holder] = rec.Seq
		}
		d.writers[rec.Lane] = rec.Writer
	case KindSupersede:
		if holder != "" && !rec.HasResult() {
			d.dead[holder] = rec.Seq
		}
		delete(d.writers, rec.Lane)
	case KindDone:
		delete(d.writers, rec.Lane)
	}
}

// Begun tells whether the log has a run, and returns what its first record says about it.
func (l *Log) Begun(ctx context.Context, run Run) (*Opening, error) {
	rec, err := l.first(ctx, l.laneSubject(run, LaneMain), 1)
	if err != nil || rec == nil {
		return nil, err
	}
	if rec.Kind != KindOpen || !rec.HasResult() {
		return nil, errors.New("stream: the run's first record is not its opening")
	}
	var o Opening
	if err := rec.Result(ctx, &o); err != nil {
		return nil, err
	}
	return &o, nil
}

// Known tells whether the log has anything of a run: its proposed input at least.
func (l *Log) Known(ctx context.Context, run Run) (bool, error) {
	rec, err := l.last(ctx, l.runSubject(run)+".>")
	return rec != nil, err
}

// Ended tells whether a run has its terminal record.
func (l *Log) Ended(ctx context.Context, run Run) (bool, error) {
	rec, err := l.last(ctx, l.laneSubject(run, LaneMain))
	return rec != nil && rec.Kind == KindTerminal, err
}
