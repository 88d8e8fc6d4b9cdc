package stream

import (
	"context"

	"github.com/perdure/perdure/agui"
)

// Speak is what a profile makes of an event.
func (p Profile) Speak(e agui.Event) ([]byte, error) {
	raw, err := agui.Encode(e)
	if err != nil {
		return nil, err
	}
	_, spoken, err := p.speak(e.EventType(), raw)
	return spoken, err
}

// ReadTo reads a run's records up to one that the leader is said to have, 0 for its last.
func (l *Log) ReadTo(ctx context.Context, run Run, to uint64) ([]*Record, error) {
	var all []*Record
	if to == 0 {
		last, err := l.last(ctx, l.runSubject(run)+".>")
		if err != nil {
			return nil, err
		}
		to = lastSeq(last)
	}
	for r, err := range l.records(ctx, l.runSubject(run)+".>", 1, to) {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// At is how far a view has read.
func (v *View) At() uint64 { return v.tail.at }
