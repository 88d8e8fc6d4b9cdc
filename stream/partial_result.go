package stream

import (
	"context"
	"errors"

	"github.com/perdure/perdure/agui"
)

// This file computes the messages of an attempt that did not finish, from its events. Supersede
// keeps them when a run is cancelled.

// partialMessages folds the events of an open attempt to messages. Each call of read adds the
// records since the one before, because Supersede may lose a race with the attempt and read again.
type partialMessages struct {
	writer   string // the attempt; a new one begins again
	readUpTo uint64 // sequence of the last record that was read
	events   int    // number of events so far
	reducer  *agui.Reducer
}

// read returns the messages up to last, the lane's last record, as the result of the step; nil =
// the attempt has written no event.
func (m *partialMessages) read(ctx context.Context, l *Log, p Place, last *Record) (*Result, error) {
	if m.writer != last.Writer {
		*m = partialMessages{writer: last.Writer, readUpTo: max(p.After, p.Since), reducer: agui.NewReducer(nil, nil)}
	}
	for rec, err := range l.Records(ctx, l.LaneSubject(p.Run, p.Lane), m.readUpTo+1, last.Seq) {
		if err != nil {
			return nil, err
		}
		if rec.Writer == m.writer && !rec.OpensStep() {
			if err := ApplyEvents(ctx, m.reducer, rec, nil); err != nil {
				return nil, err
			}
			m.events += rec.events
		}
		m.readUpTo = rec.Seq
	}
	if m.events == 0 {
		return nil, nil
	}
	return &Result{Messages: m.reducer.Messages()}, nil
}

// ApplyEvents applies the events of a record to a reducer, except for those that hidden returns
// true for; hidden nil = none. It applies all events, and returns the errors of those that do not
// apply.
func ApplyEvents(ctx context.Context, to *agui.Reducer, rec *Record, hidden func(writer string, position Position) bool) error {
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	var all error
	for i, raw := range events {
		if hidden != nil && hidden(rec.Writer, Position{rec.Seq, i}) {
			continue
		}
		e, err := agui.Decode(raw)
		if err != nil {
			return err
		}
		all = errors.Join(all, to.Apply(e))
	}
	return all
}
