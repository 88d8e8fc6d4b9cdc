package stream

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/agui"
)

// PartBytes bounds what a reader holds.
const PartBytes = partBytes

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

// Apply returns the conversation that an acceptance describes.
func (r *Reduction) Apply(a Acceptance) []agui.Message {
	return (&Reduction{Entries: r.apply(a)}).Messages()
}

// LiveState and LiveMessages are what a reader has that was shown everything a reduction knows of.
func LiveState(r *Reduction) json.RawMessage   { return liveState(r) }
func LiveMessages(r *Reduction) []agui.Message { return liveMessages(r) }

// ReduceFrom reduces records onto a reduction.
func (l *Log) ReduceFrom(ctx context.Context, base *Reduction, records ...*Record) (*Reduction, error) {
	f := newFold(l, base)
	seq := base.Seq
	for _, rec := range records {
		if err := f.add(ctx, rec); err != nil {
			return nil, err
		}
		seq = rec.Seq
	}
	return f.reduction(seq), nil
}

// ListOpened writes the index's entry about a run that began.
func (l *Log) ListOpened(ctx context.Context, run Run, agent string, seq uint64) error {
	return l.listOpened(ctx, run, agent, seq)
}

// ListSealed writes into the index that a run has ended.
func (l *Log) ListSealed(ctx context.Context, run Run, seq uint64, events ...agui.Event) error {
	return l.listSealed(ctx, Place{Run: run}, seq, events)
}

// Reader is a projection that is fed by hand.
type Reader struct{ p *Projection }

// NewReader is a reader who comes when the log has the past, with a cursor or without.
func (l *Log) NewReader(run Run, profile Profile, from *Cursor, past []*Record) Reader {
	d := newDeaths()
	for _, rec := range past {
		d.add(rec)
	}
	return Reader{newProjection(l, run, readerOf(profile, from), d.dead)}
}

// Read returns what the reader is shown of a record.
func (r Reader) Read(ctx context.Context, rec *Record) ([]Frame, error) { return r.p.add(ctx, rec) }

// At is how far a view has read.
func (v *View) At() uint64 { return v.tail.at }
