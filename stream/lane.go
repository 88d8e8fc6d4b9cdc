package stream

// The lane protocol. A lane has one writer at a time, with at most one message in flight. Its
// expected last sequence is the fence: JetStream refuses the record of a writer that another one
// has replaced. A step writes, over all its attempts:
//
//	main: … done(step 1)   open(step 2)  attempt(w1) events(w1) events(w1) ✗
//	                                     attempt(w2) events(w2) done(w2)     open(step 3) …
//
// open is written once, by the attempt that comes first. attempt voids what the attempt before it
// left unfinished. done has the result: a later attempt that finds it returns it and does nothing.
//
// Every writer names the last record that the workflow knows (after). That tells a late attempt of
// an earlier step from a new attempt of the present one: if the lane has later records of other
// steps, the late attempt is fenced.

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agui"
)

// executionTag begins the names of all writers of an execution.
func executionTag(execution string) string {
	sum := sha256.Sum256([]byte(execution))
	return tokenEncoding.EncodeToString(sum[:5])
}

func newWriter(execution string) string {
	return executionTag(execution) + "." + strings.ToLower(rand.Text()[:10])
}

func (r *Record) writtenFor(execution string) bool {
	return strings.HasPrefix(r.Writer, executionTag(execution)+".")
}

// Open writes the lifecycle events of a step once, and returns Place.After for its attempt. note is
// stored with the events, for snapshot; nil = none.
//
// It writes first, and reads the lane only if the write is refused: usually the lane ends where the
// workflow knows.
func (l *Log) Open(ctx context.Context, p Place, note any, events ...agui.Event) (uint64, error) {
	for {
		_, steers := note.(Steering)
		s := stamp{kind: KindOpen, step: p.Step, writer: newWriter(p.Execution), shared: steers}
		seq, err := l.put(ctx, p, s, p.After, note, events)
		if !errors.Is(err, ErrFenced) {
			return seq, err
		}
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return 0, err
		}
		begun, err := p.judgeLast(last)
		switch {
		case err != nil:
			return 0, err
		case begun && last.Kind == KindOpen:
			return last.Seq, nil
		case begun:
			return p.After, nil
		}
		p.After = lastSeq(last)
	}
}

// Begin makes the caller the only writer of a lane, for one attempt of a step. If an earlier
// attempt finished the step, Begin returns its last record and writes nothing. Place.After may be
// what Open returned. The caller must Close the attempt.
func (l *Log) Begin(ctx context.Context, p Place) (a *Attempt, done *Record, err error) {
	resumed := false
	for last := p.After; ; {
		s := stamp{kind: KindAttempt, step: p.Step, writer: newWriter(p.Execution)}
		seq, err := l.put(ctx, p, s, last, nil, nil)
		if err == nil {
			return newAttempt(l, p, s.writer, seq, resumed), nil, nil
		}
		if !errors.Is(err, ErrFenced) {
			return nil, nil, err
		}
		found, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return nil, nil, err
		}
		begun, err := p.judgeLast(found)
		if err != nil {
			return nil, nil, err
		}
		if begun && found.Kind == KindDone {
			return nil, found, nil
		}
		last, resumed = lastSeq(found), begun && found.Kind != KindOpen
	}
}

// Succeed prepares a lane for a step after one that failed. It opens the failed step, unless that
// was done, with note and events like [Log.Open], voids what the step left, and returns Place.After
// for the next step.
func (l *Log) Succeed(ctx context.Context, p, failed Place, note any, events ...agui.Event) (uint64, error) {
	for {
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return 0, err
		}
		if lastSeq(last) > p.After && last.Step == p.Step && last.writtenFor(p.Execution) { // an attempt of it was here
			if last.Kind == KindSupersede {
				return last.Seq, nil
			}
			return p.After, nil
		}
		if _, err = l.Open(ctx, failed, note, events...); err != nil {
			return 0, err
		}
		if last, err = l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane)); err != nil {
			return 0, err
		}
		if last.Step == failed.Step && (last.Kind == KindOpen || last.Kind == KindDone) {
			return last.Seq, nil
		}
		s := stamp{kind: KindSupersede, step: p.Step, writer: newWriter(p.Execution)}
		if seq, err := l.put(ctx, p, s, lastSeq(last), nil, nil); !errors.Is(err, ErrFenced) {
			return seq, err
		}
	}
}

// Supersede takes over a lane whose step did not finish, so that a late attempt is fenced. With
// keep, what the unfinished attempt said is kept and closed; otherwise it is retracted. A tool's
// lane is taken over even if its step has not begun, so that a late attempt does not call the tool.
// A finished step, and an idle main lane, are left alone.
func (l *Log) Supersede(ctx context.Context, p Place, keep bool) error {
	var partial saying
	for {
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return err
		}
		begun := lastSeq(last) > max(p.After, p.Since)
		switch {
		case !begun && p.Lane.Speaks(), begun && last.Kind != KindAttempt && last.Kind != KindEvents:
			return nil
		case begun && !last.writtenFor(p.Execution):
			return ErrOver
		}
		var note any
		if keep && begun && last.Kind == KindEvents {
			said, err := partial.read(ctx, l, p, last)
			if err != nil {
				return err
			}
			if said != nil {
				note = said
			}
		}
		s := stamp{kind: KindSupersede, step: p.Step, writer: newWriter(p.Execution)}
		if _, err = l.put(ctx, p, s, lastSeq(last), note, nil); !errors.Is(err, ErrFenced) {
			return err
		}
	}
}

// Seal ends a run with its terminal events. If the run has ended before, Seal returns the record
// that ended it and writes nothing.
func (l *Log) Seal(ctx context.Context, p Place, events ...agui.Event) (uint64, *Record, error) {
	for {
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, LaneMain))
		if err != nil {
			return 0, nil, err
		}
		switch {
		case last == nil && p.After > 0, last != nil && last.Seq < p.After:
			return 0, nil, fmt.Errorf("%w: run %q lacks record %d", ErrLogLost, p.Run.ID, p.After)
		case last != nil && last.Kind == KindTerminal:
			return last.Seq, last, l.listEnded(ctx, p.Run, last)
		case last != nil && !last.writtenFor(p.Execution):
			return 0, nil, ErrOver
		}
		s := stamp{kind: KindTerminal, step: p.Step, writer: newWriter(p.Execution)}
		seq, err := l.put(ctx, p, s, lastSeq(last), p.sealing(), events)
		switch {
		case err == nil:
			return seq, nil, l.listSealed(ctx, p, seq, events)
		case !errors.Is(err, ErrFenced):
			return seq, nil, err
		}
	}
}

// put writes one record of a lane, fenced by expected.
func (l *Log) put(ctx context.Context, p Place, s stamp, expected uint64, note any, events []agui.Event) (uint64, error) {
	lines, err := p.encode(events)
	if err != nil {
		return 0, err
	}
	var result []byte
	if note != nil {
		if result, err = json.Marshal(note); err != nil {
			return 0, fmt.Errorf("stream: encode %s: %w", s.kind, err)
		}
	}
	return l.write(ctx, l.LaneSubject(p.Run, p.Lane), s, expected, lines, result)
}

// write stores what is too large for a frame as a blob, and appends the record.
func (l *Log) write(ctx context.Context, subject string, s stamp, expected uint64, events [][]byte, result []byte) (uint64, error) {
	return l.writeOn(ctx, subject, s, expected, events, result, nil)
}

// writeOn is write together with a mark; nil = without one.
func (l *Log) writeOn(ctx context.Context, subject string, s stamp, expected uint64, events [][]byte, result []byte, on *mark) (uint64, error) {
	_, _, lane, _ := splitSubject(subject)
	s.shared = s.shared || lane.sharesAny(events)
	events, err := l.shrinkAll(ctx, subject, events)
	if err != nil {
		return 0, err
	}
	if result != nil {
		if result, err = l.shrink(ctx, subject, result); err != nil {
			return 0, err
		}
	}
	msg := message(subject, s, events, result)
	if on != nil {
		return l.appendOn(ctx, msg, s, expected, *on)
	}
	return l.append(ctx, msg, s, expected)
}
