package trace

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Read folds the records of a run, with all its segments, as of now. The fold has not begun if the
// log has no such run, or only its proposal. Errors are those of the log, and stream.ErrGone.
func Read(ctx context.Context, store *snapshot.Store, run stream.Run) (*Fold, error) {
	f := NewFold(store, run)
	segments, err := segmentsOf(ctx, store.Log(), run)
	if err != nil {
		return nil, err
	}
	if len(segments) == 1 {
		return f, f.addAll(ctx, recordsOf(ctx, store.Log(), run))
	}
	// The audit of a segment may have records after the opening of the next one.
	var all []*stream.Record
	for _, segment := range segments {
		for rec, err := range recordsOf(ctx, store.Log(), segment) {
			if err != nil {
				return nil, err
			}
			all = append(all, rec)
		}
	}
	slices.SortFunc(all, func(a, b *stream.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, rec := range all {
		if err := f.Add(ctx, rec); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// ReadSegment is Read for one segment of a run, without its others.
func ReadSegment(ctx context.Context, store *snapshot.Store, segment stream.Run) (*Fold, error) {
	f := NewFold(store, segment)
	return f, f.addAll(ctx, recordsOf(ctx, store.Log(), segment))
}

// addAll adds records.
func (f *Fold) addAll(ctx context.Context, records iter.Seq2[*stream.Record, error]) error {
	for rec, err := range records {
		if err == nil {
			err = f.Add(ctx, rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// segmentsOf returns the segments of a run; the first one need not exist.
func segmentsOf(ctx context.Context, l *stream.Log, run stream.Run) ([]stream.Run, error) {
	segments := []stream.Run{run}
	for {
		next := run.Segment(len(segments) + 1)
		opening, err := l.OpeningOf(ctx, next)
		if err != nil || opening == nil {
			return segments, err
		}
		segments = append(segments, next)
	}
}

// recordsOf yields the records of one segment of a run.
func recordsOf(ctx context.Context, l *stream.Log, run stream.Run) iter.Seq2[*stream.Record, error] {
	return func(yield func(*stream.Record, error) bool) {
		subject := l.RunSubject(run) + ".>"
		last, err := l.Last(ctx, subject)
		switch {
		case err != nil:
			yield(nil, err)
		case last != nil:
			l.Records(ctx, subject, 1, last.Seq)(yield)
		}
	}
}
