package stream

import (
	"context"

	"github.com/perdure/perdure/agui"
)

// PartBytes bounds the bytes that a reader holds.
const PartBytes = batchBytes

// ReadTo reads a run's records up to the sequence to; 0 is the run's last record.
func (l *Log) ReadTo(ctx context.Context, run Run, to uint64) ([]*Record, error) {
	var all []*Record
	if to == 0 {
		last, err := l.Last(ctx, l.RunSubject(run)+".>")
		if err != nil {
			return nil, err
		}
		to = lastSeq(last)
	}
	for r, err := range l.Records(ctx, l.RunSubject(run)+".>", 1, to) {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// ListOpened writes the index entry of a run that began.
func (l *Log) ListOpened(ctx context.Context, run Run, agent string, seq uint64) error {
	return l.indexOpening(ctx, run, agent, seq, Description{})
}

// ListSealed writes the index entry of a run that ended.
func (l *Log) ListSealed(ctx context.Context, run Run, seq uint64, events ...agui.Event) error {
	return l.indexNewEnd(ctx, Place{Run: run}, seq, events)
}

// HasOnlyCopy reports whether the connected server has the only copy of the log.
func (l *Log) HasOnlyCopy() bool { return l.hasOnlyCopy() }
