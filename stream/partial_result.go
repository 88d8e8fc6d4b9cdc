package stream

import (
	"context"
	"errors"

	"github.com/perdure/perdure/agui"
)

// saying follows the messages of an open attempt. Each call reads only the records since the one
// before.
type saying struct {
	writer string
	upTo   uint64
	events int
	said   *agui.Reducer
}

// read returns the messages up to a record, the lane's last; nil = the attempt has written no
// event.
func (s *saying) read(ctx context.Context, l *Log, p Place, last *Record) (*Result, error) {
	if s.writer != last.Writer {
		*s = saying{writer: last.Writer, upTo: max(p.After, p.Since), said: agui.NewReducer(nil, nil)}
	}
	for rec, err := range l.Records(ctx, l.LaneSubject(p.Run, p.Lane), s.upTo+1, last.Seq) {
		if err != nil {
			return nil, err
		}
		if rec.Writer == s.writer {
			if err := ApplyEvents(ctx, s.said, rec, nil); err != nil {
				return nil, err
			}
			s.events += rec.events
		}
		s.upTo = rec.Seq
	}
	if s.events == 0 {
		return nil, nil
	}
	return &Result{Messages: s.said.Messages()}, nil
}

// ApplyEvents applies the events of a record to a reducer, except for hidden ones; hidden nil =
// none.
func ApplyEvents(ctx context.Context, to *agui.Reducer, rec *Record, hidden func(writer string, at Position) bool) error {
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
