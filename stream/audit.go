package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"
)

// LaneAudit has the audit entries of a run's interrupts. Its records may follow the run's terminal
// record. They are shown to no reader and change no snapshot.
const LaneAudit Lane = "audit"

// AppendAudit appends an entry to the audit of a run, once for each ID. An ID has no blanks. The
// lane has several concurrent writers: a refused write searches the lane again, and retries after
// its last record. All of the lane is searched for the ID, so a late attempt finds its own entry
// even if others follow; the lane is short.
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
		after, exists, err := l.findAudit(ctx, subject, id)
		if err != nil || exists {
			return err
		}
		s := stamp{kind: KindAudit, step: id, writer: newWriter("")}
		msg, err := l.message(ctx, subject, s, nil, body)
		if err != nil {
			return err
		}
		if _, err = l.append(ctx, msg, s, after); !errors.Is(err, ErrFenced) {
			return err
		}
	}
}

// findAudit reports whether the lane has an entry with this ID, and returns the sequence of that
// entry, else of the lane's last record.
func (l *Log) findAudit(ctx context.Context, subject, id string) (after uint64, exists bool, err error) {
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

// AuditOf yields the audit entries of the thread of a record, in their order.
func (l *Log) AuditOf(ctx context.Context, r *Record) iter.Seq2[*Record, error] {
	return l.recordsUnder(ctx, r.thread+".*."+string(LaneAudit))
}

// AuditAll yields the audit entries of all threads of all tenants, for the restore of the inbox.
func (l *Log) AuditAll(ctx context.Context) iter.Seq2[*Record, error] {
	return l.recordsUnder(ctx, l.prefix+".*.*.*."+string(LaneAudit))
}

// recordsUnder yields the records under a subject up to the one that is the last when the iteration
// begins.
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

// DecisionAt returns the decision of the proposal with a sequence, and when it was proposed. The
// error is ErrLogLost if the log lacks that record.
func (l *Log) DecisionAt(ctx context.Context, seq uint64) (*Decision, time.Time, error) {
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
