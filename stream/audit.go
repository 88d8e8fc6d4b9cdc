package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
)

// LaneAudit has the audit entries of a run's interrupts. Its records follow the run's end, are
// shown to no reader, and change no snapshot.
const LaneAudit Lane = "audit"

// AppendAudit appends an entry to the audit of a run, once for each ID. An ID has no blanks. The
// lane is short, so all of it is searched for the ID: a late attempt finds its own entry also if
// others follow.
func (l *Log) AppendAudit(ctx context.Context, run Run, id string, entry any) error {
	body, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("stream: encode audit: %w", err)
	}
	subject := l.LaneSubject(run, LaneAudit)
	if body, err = l.shrink(ctx, subject, body); err != nil {
		return err
	}
	for {
		after, found, err := l.audited(ctx, subject, id)
		if err != nil || found {
			return err
		}
		s := stamp{kind: KindAudit, step: id, writer: newWriter("")}
		if _, err = l.append(ctx, message(subject, s, nil, body), s, after); !errors.Is(err, ErrFenced) {
			return err
		}
	}
}

// audited searches for an entry, and returns the lane's last sequence.
func (l *Log) audited(ctx context.Context, subject, id string) (after uint64, found bool, err error) {
	for rec, err := range l.recordsUnder(ctx, subject) {
		if err != nil {
			return 0, false, err
		}
		if rec.Step == id {
			return rec.Seq, true, nil
		}
		after = rec.Seq
	}
	return after, false, nil
}

// Audit yields the audit entries of a thread, in their order.
func (l *Log) Audit(ctx context.Context, t Thread) iter.Seq2[*Record, error] {
	return l.recordsUnder(ctx, l.ThreadSubject(t)+".*."+string(LaneAudit))
}

// AuditAll yields the audit entries of all threads of all tenants.
func (l *Log) AuditAll(ctx context.Context) iter.Seq2[*Record, error] {
	return l.recordsUnder(ctx, l.prefix+".*.*.*."+string(LaneAudit))
}

// recordsUnder yields the records that are under a subject by now.
func (l *Log) recordsUnder(ctx context.Context, subject string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		last, err := l.Last(ctx, subject)
		switch {
		case err != nil:
			yield(nil, err)
		case last != nil:
			l.Records(ctx, subject, 1, last.Seq)(yield)
		}
	}
}

// DecisionSaid returns a proposed decision, and when it was proposed.
func (l *Log) DecisionSaid(ctx context.Context, seq uint64) (*Decision, time.Time, error) {
	rec, err := l.At(ctx, seq)
	if err != nil {
		return nil, time.Time{}, err
	}
	if rec == nil {
		return nil, time.Time{}, fmt.Errorf("%w: decision %d", ErrLogLost, seq)
	}
	d := new(Decision)
	return d, rec.Time, rec.Result(ctx, d)
}
