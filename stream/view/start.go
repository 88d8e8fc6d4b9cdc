package view

import (
	"context"
	"fmt"
	"iter"

	"github.com/perdure/perdure/stream"
)

// This file finds where the past of a view begins, and reads it in two passes for each run: the
// first pass finds the attempts that were superseded, the second one projects the records. A
// superseded attempt is known only from a later record, and it must not be shown.

// scanBytes bounds how much of a run's past a view keeps in memory between the two passes. A larger
// past is read from the log twice, because a slow client would hold it for as long as it reads.
const scanBytes = 64 << 10

// findThreadStart returns where a reader of a thread starts: at the first record of the run of its
// cursor, else at the last run, which it joins. The error is stream.ErrInvalidCursor if the record
// of the cursor is not one of the thread, and stream.ErrGone if it was purged.
func (v Viewer) findThreadStart(ctx context.Context, thread stream.Thread, after *stream.Cursor) (start, error) {
	if after == nil {
		snap, err := v.Snapshots.Latest(ctx, thread, 0)
		if err != nil || snap.Run == "" {
			return start{from: 1}, err
		}
		main := mainSubject(v.Snapshots.Log(), thread, snap.Run)
		if snap.Sealed {
			return v.findJoinStart(ctx, main)
		}
		// A run that has not ended there may be sealed meanwhile, but after the next run has begun:
		// the reader needs all records from its beginning on.
		opening, err := v.Snapshots.Log().First(ctx, main, 1)
		if err != nil || opening == nil {
			return start{from: 1}, err
		}
		return start{from: opening.Seq}, nil
	}
	position, l := after.Position, v.Snapshots.Log()
	if shown, inside := after.Retracted(); inside { // the position may be the opening of the run after the retracted attempt's
		position = shown
	}
	if position.Seq == 0 {
		return start{from: 1}, nil
	}
	rec, err := l.At(ctx, position.Seq)
	if err != nil {
		return start{}, err
	}
	if rec == nil {
		withdrawn, err := l.Missing(ctx, thread, position.Seq)
		if err != nil || withdrawn { // the record told the run
			return start{from: 1}, err
		}
	}
	if rec == nil || !rec.OfThread(thread) {
		return start{}, fmt.Errorf("%w: the cursor belongs to another thread", stream.ErrInvalidCursor)
	}
	opening, err := l.First(ctx, mainSubject(l, thread, rec.RunToken()), 1)
	if err != nil || opening == nil {
		return start{from: 1}, err
	}
	return start{from: opening.Seq}, nil
}

// findJoinStart returns where a reader starts that joins the run with this main lane. Of a run that
// has ended only the first record and the last one are read: snapshots have the rest.
func (v Viewer) findJoinStart(ctx context.Context, main string) (start, error) {
	l := v.Snapshots.Log()
	opening, err := l.First(ctx, main, 1)
	if err != nil || opening == nil {
		return start{from: 1}, err
	}
	last, err := l.Last(ctx, main)
	if err != nil || last == nil || last.Kind != stream.KindTerminal {
		return start{from: opening.Seq}, err
	}
	return start{opening, last.Seq}, nil
}

// mainSubject returns the subject of the main lane of a run, by the run's token.
func mainSubject(l *stream.Log, t stream.Thread, run string) string {
	return l.ThreadSubject(t) + "." + run + "." + string(stream.LaneMain)
}

// pastByRun yields the past. It reads a run to its end before it yields any of it, because s must
// have the run's superseded attempts then. It reads no further, so one page of a long thread costs
// that page only. The exception is a cursor: all its records must be found before the first one is
// yielded.
func (v *View) pastByRun(ctx context.Context, first start, s *supersessions) iter.Seq2[*stream.Record, error] {
	return func(yield func(*stream.Record, error) bool) {
		if first.opening != nil && !yield(first.opening, nil) {
			return
		}
		unread := cursorRecords(v.reader.from)
		var run scannedRange
		for rec, err := range v.tail.Past(ctx, first.from) {
			if err != nil {
				yield(nil, err)
				return
			}
			if rec.OpensRun() && len(unread) == 0 {
				if !run.replay(ctx, v.tail, yield) {
					return
				}
				run = scannedRange{}
			}
			s.add(rec)
			delete(unread, rec.Seq)
			run.add(rec)
		}
		if err := v.checkCursorRecords(ctx, unread); err != nil {
			yield(nil, err)
			return
		}
		run.replay(ctx, v.tail, yield)
	}
}

// checkCursorRecords checks the records of a cursor that are not in the past. The error is
// stream.ErrInvalidCursor if such a record is of another run or thread, and stream.ErrGone if it
// was purged. Records of internal lanes are allowed, although they are never shown: the
// acknowledgement of a steering message has the cursor of its proposal.
func (v *View) checkCursorRecords(ctx context.Context, records map[uint64]bool) error {
	for seq := range records {
		rec, err := v.tail.Log().At(ctx, seq)
		if err != nil {
			return err
		}
		if rec == nil {
			withdrawn, err := v.tail.Missing(ctx, seq)
			if err != nil {
				return err
			}
			if withdrawn {
				continue
			}
		}
		if rec == nil || !v.tail.Has(rec) || !rec.Lane.IsInternal() {
			return fmt.Errorf("%w: its position is not in the requested stream", stream.ErrInvalidCursor)
		}
	}
	return nil
}

// scannedRange is the range of records that the first pass has read, which the second pass yields.
// The zero value is an empty range.
type scannedRange struct {
	from, to uint64
	bytes    int
	records  []*stream.Record // nil = beyond scanBytes: the second pass reads the log
}

// add extends the range by a record. Beyond scanBytes it keeps the bounds only.
func (s *scannedRange) add(rec *stream.Record) {
	if s.to == 0 {
		s.from = rec.Seq
	}
	s.to = rec.Seq
	if s.bytes += rec.Size(); s.bytes > scanBytes {
		s.records = nil
		return
	}
	s.records = append(s.records, rec)
}

// replay yields the range for the second pass. It returns false if yield did, or after an error.
func (s *scannedRange) replay(ctx context.Context, tail *stream.Tail, yield func(*stream.Record, error) bool) bool {
	if s.records == nil && s.to > 0 {
		for rec, err := range tail.Between(ctx, s.from, s.to) {
			if !yield(rec, err) || err != nil {
				return false
			}
		}
		return true
	}
	for _, rec := range s.records {
		if !yield(rec, nil) {
			return false
		}
	}
	return true
}

// cursorRecords returns the sequences of the records that a cursor refers to; nil = no cursor.
func cursorRecords(c *stream.Cursor) map[uint64]bool {
	records := map[uint64]bool{}
	if c != nil {
		records[c.Seq] = true
		if bound, inside := c.Retracted(); inside {
			records[bound.Seq] = true
		}
	}
	delete(records, 0) // the position before all events has no record
	return records
}

// supersessions finds the attempts that were superseded, from the records of one or more runs in
// the order of the log.
type supersessions struct {
	supersededAt map[string]uint64  // superseded writers, with the record that superseded each; projections share it
	holders      map[runLane]string // writers of unfinished attempts
}

// runLane names a lane of one of several runs of a thread.
type runLane struct {
	run  string
	lane stream.Lane
}

func newSupersessions() *supersessions {
	return &supersessions{supersededAt: map[string]uint64{}, holders: map[runLane]string{}}
}

// add takes in the next record. An attempt record supersedes the lane's unfinished attempt; so does
// a supersede record without a result. With a result it keeps the attempt's events.
func (s *supersessions) add(rec *stream.Record) {
	lane := runLane{rec.RunToken(), rec.Lane}
	holder := s.holders[lane]
	switch rec.Kind {
	case stream.KindAttempt, stream.KindBegin:
		if holder != "" && holder != rec.Writer {
			s.supersededAt[holder] = rec.Seq
		}
		s.holders[lane] = rec.Writer
	case stream.KindSupersede:
		if holder != "" && !rec.HasResult() {
			s.supersededAt[holder] = rec.Seq
		}
		delete(s.holders, lane)
	case stream.KindDone:
		delete(s.holders, lane)
	}
}
