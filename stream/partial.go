package stream

import (
	"context"
	"errors"

	"github.com/perdure/perdure/agui"
)

// Partial returns what the unfinished attempt on a lane has said so far, as finished messages; nil
// if there is none.
func (l *Log) Partial(ctx context.Context, p Place) (*Result, error) {
	subject := l.laneSubject(p.Run, p.Lane)
	last, err := l.last(ctx, subject)
	if err != nil || last == nil || last.Kind != KindEvents || last.Seq <= p.After {
		return nil, err
	}
	said := agui.NewReducer(nil, nil)
	for rec, err := range l.records(ctx, subject, p.After+1, last.Seq) {
		if err != nil {
			return nil, err
		}
		if rec.Writer != last.Writer {
			continue
		}
		if err := reduceEvents(ctx, said, rec); err != nil {
			return nil, err
		}
	}
	return &Result{Messages: said.Messages()}, nil
}

func reduceEvents(ctx context.Context, to *agui.Reducer, rec *Record) error {
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, raw := range events {
		e, err := agui.Decode(raw)
		if err != nil {
			return err
		}
		all = errors.Join(all, to.Apply(e))
	}
	return all
}
