package stream

// The lane protocol. A lane has one writer at a time, with at most one message in flight. Its
// expected last sequence is the fence: JetStream refuses the record of a writer that another one
// has replaced. A step writes, over all its attempts:
//
//	main: … done(step 1)   open(step 2)  attempt(w1) events(w1) events(w1) ✗
//	                                     attempt(w2) events(w2) done(w2)     open(step 3) …
//
// The first attempt writes open, once. An attempt record supersedes the events of the unfinished
// attempt before it. A done record has the result: a later attempt that finds it returns the result
// and does nothing else. A begin record is the open record and the first attempt record in one:
//
//	main: … done(step 1)   begin(step 2, w1) events(w1) ✗   attempt(w2) …
//
// Every writer names the last record that the workflow knows (Place.After). That tells a late
// attempt of an earlier step from a new attempt of the current one: if the lane has later records
// of other steps, the late attempt is fenced.
//
// Activities call these functions, and so does the API for a run whose workflow has died. They
// retry during outages until ctx ends (see Log.append), so a caller bounds them with ctx.

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

// executionTag returns the prefix of the names of all writers of a Temporal execution: eight
// characters of the digest of its run ID.
func executionTag(execution string) string {
	sum := sha256.Sum256([]byte(execution))
	return tokenEncoding.EncodeToString(sum[:5])
}

// newWriter returns a random name for one writer of an execution. Two attempts of one activity have
// different names, so each recognizes its own records.
func newWriter(execution string) string {
	return executionTag(execution) + "." + strings.ToLower(rand.Text()[:10])
}

// writtenFor reports whether a writer of the execution has written the record.
func (r *Record) writtenFor(execution string) bool {
	return strings.HasPrefix(r.Writer, executionTag(execution)+".")
}

// OpenStep writes the lifecycle events of a step once, and returns the sequence that the step's
// attempt uses as Place.After. result becomes the record's result, for package snapshot; nil =
// none.
//
// If an earlier attempt of the step has written, OpenStep writes nothing: it returns the sequence
// of the open record if that is the lane's last record, else p.After. The error is ErrOver if the
// step is over (see Place.stepHasWritten), and ErrLogLost if the lane lacks p.After.
//
// OpenStep writes first, and reads the lane only if the write is refused: usually p.After is the
// lane's last record.
func (l *Log) OpenStep(ctx context.Context, p Place, result any, events ...agui.Event) (uint64, error) {
	for {
		seq, err := l.put(ctx, p, openStamp(KindOpen, p, result), p.After, result, events)
		if !errors.Is(err, ErrFenced) {
			return seq, err
		}
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return 0, err
		}
		stepHasWritten, err := p.stepHasWritten(last)
		switch {
		case err != nil:
			return 0, err
		case stepHasWritten && last.Kind == KindOpen:
			return last.Seq, nil
		case stepHasWritten:
			return p.After, nil
		}
		p.After = lastSeq(last)
	}
}

// BeginStep is OpenStep and then Begin for the same attempt. If the step has no record, it writes
// only one: a begin record. The sequence is that of this record; 0 = an earlier attempt has opened
// the step.
func (l *Log) BeginStep(ctx context.Context, p Place, result any, events ...agui.Event) (a *Attempt, opened uint64, done *Record, err error) {
	s := openStamp(KindBegin, p, result)
	for expected := p.After; ; {
		seq, err := l.put(ctx, p, s, expected, result, events)
		if err == nil {
			return newAttempt(l, p, s.writer, seq), seq, nil, nil
		}
		if !errors.Is(err, ErrFenced) {
			return nil, 0, nil, err
		}
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return nil, 0, nil, err
		}
		stepHasWritten, err := p.stepHasWritten(last)
		if err != nil {
			return nil, 0, nil, err
		}
		if stepHasWritten {
			a, done, err = l.Begin(ctx, p)
			return a, 0, done, err
		}
		expected = lastSeq(last)
	}
}

// openStamp returns the stamp of a record that opens a step. The shared flag tells a steering from an
// opening (Record.Steers).
func openStamp(kind Kind, p Place, result any) stamp {
	_, steers := result.(Steering)
	return stamp{kind: kind, step: p.Step, writer: newWriter(p.Execution), shared: steers}
}

// Begin makes the caller the only writer of a lane, for one attempt of a step: it writes an attempt
// record after the lane's last record. A writer of an earlier attempt is fenced from then on, and
// its unfinished events are superseded.
//
// If an earlier attempt finished the step, Begin returns a nil attempt and that attempt's done
// record, and writes nothing. Place.After may be the result of OpenStep. The error is ErrOver if
// the step is over (see Place.stepHasWritten), and ErrLogLost if the lane lacks Place.After. The
// caller must Close the attempt.
func (l *Log) Begin(ctx context.Context, p Place) (a *Attempt, done *Record, err error) {
	isResumed := false
	for expected := p.After; ; {
		s := stamp{kind: KindAttempt, step: p.Step, writer: newWriter(p.Execution)}
		seq, err := l.put(ctx, p, s, expected, nil, nil)
		if err == nil {
			a = newAttempt(l, p, s.writer, seq)
			a.followsUnfinished = isResumed
			return a, nil, nil
		}
		if !errors.Is(err, ErrFenced) {
			return nil, nil, err
		}
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return nil, nil, err
		}
		stepHasWritten, err := p.stepHasWritten(last)
		if err != nil {
			return nil, nil, err
		}
		if stepHasWritten && last.Kind == KindDone {
			return nil, last, nil
		}
		// A record of this step beyond its opening means that an earlier attempt got the lane.
		expected, isResumed = lastSeq(last), stepHasWritten && last.Kind != KindOpen
	}
}

// Done returns the done record of a step that an attempt of the execution has finished, although
// later steps may have written to the lane; nil = there is none. Unlike Begin it reads the lane from
// Place.After on, so it is for a step that is repeated with its successors: Temporal repeats the
// workflow task that executed them.
func (l *Log) Done(ctx context.Context, p Place) (*Record, error) {
	subject := l.LaneSubject(p.Run, p.Lane)
	last, err := l.lastOfLane(ctx, subject)
	if err != nil || last == nil {
		return nil, err
	}
	for r, err := range l.Records(ctx, subject, max(p.After, p.Since)+1, last.Seq) {
		if err != nil {
			return nil, err
		}
		if r.Kind == KindDone && r.Step == p.Step && r.writtenFor(p.Execution) {
			return r, nil
		}
	}
	return nil, nil
}

// SteeredInto returns with how many steering messages a step was opened: the attempt that opened it may
// know fewer of them than later ones.
func (l *Log) SteeredInto(ctx context.Context, p Place) (n int, err error) {
	subject := l.LaneSubject(p.Run, p.Lane)
	last, err := l.lastOfLane(ctx, subject)
	if err != nil || last == nil {
		return 0, err
	}
	for r, err := range l.Records(ctx, subject, max(p.After, p.Since)+1, last.Seq) {
		switch {
		case err != nil:
			return 0, err
		case r.Step != p.Step:
		case !r.Steers():
			return 0, nil
		default:
			var s Steering
			err := r.Result(ctx, &s)
			return len(s.Inputs), err
		}
	}
	return 0, nil
}

// IsFollowed reports whether the last record of the lane is of a later step of the same execution: the
// step p has ended for the workflow, whether it has a done record or failed.
func (l *Log) IsFollowed(ctx context.Context, p Place) (bool, error) {
	last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
	if err != nil || lastSeq(last) <= max(p.After, p.Since) {
		return false, err
	}
	return last.Step != p.Step && last.Kind != KindTerminal && last.writtenFor(p.Execution), nil
}

// OpenAfterFailure prepares a lane for the step p. The step failed has ended for good: none of its
// attempts is in progress. It returns Place.After for p.
//
// It opens the failed step with result and events like [Log.OpenStep], unless an attempt has done
// so. If an attempt of the failed step has written after that, OpenAfterFailure writes a supersede
// record in the name of p, without a result: it retracts the events of that attempt and fences it.
// If the lane has records of p already, an earlier attempt has done all this, and OpenAfterFailure
// writes nothing.
func (l *Log) OpenAfterFailure(ctx context.Context, p, failed Place, result any, events ...agui.Event) (uint64, error) {
	for {
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return 0, err
		}
		if lastSeq(last) > p.After && last.Step == p.Step && last.writtenFor(p.Execution) { // an earlier attempt of p
			if last.Kind == KindSupersede {
				return last.Seq, nil
			}
			return p.After, nil
		}
		if _, err = l.OpenStep(ctx, failed, result, events...); err != nil {
			return 0, err
		}
		if last, err = l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane)); err != nil {
			return 0, err
		}
		// An open record has shown nothing, and a done record stands: nothing is to be retracted.
		if last.Step == failed.Step && (last.Kind == KindOpen || last.Kind == KindDone) {
			return last.Seq, nil
		}
		s := stamp{kind: KindSupersede, step: p.Step, writer: newWriter(p.Execution)}
		if seq, err := l.put(ctx, p, s, lastSeq(last), nil, nil); !errors.Is(err, ErrFenced) {
			return seq, err
		}
	}
}

// HasLater reports whether the lane has a record after Place.After and Place.Since: a step has written
// of which the workflow has no answer. If not, there is nothing that Supersede would retract on an
// agent's lane, and AttemptOutputs has nothing.
func (l *Log) HasLater(ctx context.Context, p Place) (bool, error) {
	last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
	return lastSeq(last) > max(p.After, p.Since), err
}

// Supersede takes over a lane whose step did not finish, so that a late attempt is fenced. The
// events of the unfinished attempt are retracted.
//
// A tool's lane is taken over even if its step has not begun, so that a late attempt does not call
// the tool. Supersede writes nothing if the lane's last record ends or opens a step, or if an
// agent's lane has no record after Place.After and Place.Since. The error is ErrOver if another
// execution has written.
func (l *Log) Supersede(ctx context.Context, p Place) error { return l.supersede(ctx, p, nil) }

// SupersedeKeepingMessages is Supersede, but the record has the unfinished attempt's messages as
// its result: readers keep them and see them closed. An attempt without messages is retracted.
func (l *Log) SupersedeKeepingMessages(ctx context.Context, p Place) error {
	return l.supersede(ctx, p, &partialMessages{})
}

// supersede writes the record of Supersede, with the messages that partial collects as its result;
// partial nil = without a result.
func (l *Log) supersede(ctx context.Context, p Place, partial *partialMessages) error {
	for {
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, p.Lane))
		if err != nil {
			return err
		}
		stepHasWritten := lastSeq(last) > max(p.After, p.Since)
		switch {
		case !stepHasWritten && p.Lane.IsAgentLane(), stepHasWritten && (last.Kind == KindDone || !last.isOfAttempt()):
			return nil
		case stepHasWritten && !last.writtenFor(p.Execution):
			return ErrOver
		}
		var content any // a supersede record without a result retracts
		if partial != nil && stepHasWritten && last.Kind == KindEvents {
			result, err := partial.read(ctx, l, p, last)
			if err != nil {
				return err
			}
			if result != nil {
				content = result
			}
		}
		s := stamp{kind: KindSupersede, step: p.Step, writer: newWriter(p.Execution)}
		if _, err = l.put(ctx, p, s, lastSeq(last), content, nil); !errors.Is(err, ErrFenced) {
			return err
		}
	}
}

// Seal ends a run with its terminal events: it writes the terminal record as the last record of the
// main lane, and then writes the entry about the end to the index of threads. The first result is
// the record's sequence. If the run has ended before, Seal writes no record and returns the
// existing one; otherwise the record is nil. Like OpenStep, Seal reads the lane only if the write is
// refused, so p.After must be a record of the same execution.
//
// The error is ErrOver if another execution has written to the run, and ErrLogLost if the lane
// lacks p.After. After an error the terminal record may exist without its entry in the index; the
// next call of Seal writes the entry.
func (l *Log) Seal(ctx context.Context, p Place, events ...agui.Event) (uint64, *Record, error) {
	for expected := p.After; ; {
		s := stamp{kind: KindTerminal, step: p.Step, writer: newWriter(p.Execution)}
		seq, err := l.put(ctx, p, s, expected, p.terminalNote(), events)
		if err == nil {
			return seq, nil, l.indexNewEnd(ctx, p, seq, events)
		}
		if !errors.Is(err, ErrFenced) {
			return seq, nil, err
		}
		last, err := l.lastOfLane(ctx, l.LaneSubject(p.Run, LaneMain))
		switch {
		case err != nil:
			return 0, nil, err
		case lastSeq(last) < p.After:
			return 0, nil, fmt.Errorf("%w: run %q lacks record %d", ErrLogLost, p.Run.ID, p.After)
		case last != nil && last.Kind == KindTerminal:
			// The process that wrote the record may have died before it wrote the entry.
			return last.Seq, last, l.indexExistingEnd(ctx, p.Run, last)
		case last != nil && !last.writtenFor(p.Execution):
			return 0, nil, ErrOver
		}
		expected = lastSeq(last)
	}
}

// put encodes and writes one record of the lane p. The record must follow the record expected of
// that lane (0 = it is the first), else the error is ErrFenced. content becomes the result; nil =
// none.
func (l *Log) put(ctx context.Context, p Place, s stamp, expected uint64, content any, events []agui.Event) (uint64, error) {
	lines, err := p.encode(events, nil)
	if err != nil {
		return 0, err
	}
	var result []byte
	if content != nil {
		if result, err = json.Marshal(content); err != nil {
			return 0, fmt.Errorf("stream: encode %s: %w", s.kind, err)
		}
	}
	return l.write(ctx, l.LaneSubject(p.Run, p.Lane), s, expected, lines, result, nil)
}

// write appends a record (see Log.append for retries and errors), together with a mark, both or
// neither; condition nil = without a mark. Lines that are too large for a record become blobs. The
// blobs are acknowledged before the record that refers to them is sent, so a record never has a
// reference to a missing blob. A record that is refused leaves its blobs in the object store.
func (l *Log) write(ctx context.Context, subject string, s stamp, expected uint64, lines [][]byte, result []byte, condition *mark) (uint64, error) {
	_, _, lane, _ := splitSubject(subject)
	s.shared = s.shared || lane.sharesAny(lines)
	room := MaxFrame
	if result != nil {
		var err error
		if result, err = l.shrink(ctx, subject, result); err != nil {
			return 0, err
		}
		room -= len(result) + 1
	}
	lines, err := l.shrinkAll(ctx, subject, lines, room)
	if err != nil {
		return 0, err
	}
	msg, err := l.message(ctx, subject, s, lines, result)
	if err != nil {
		return 0, err
	}
	if condition != nil {
		return l.appendWithMark(ctx, msg, s, expected, *condition)
	}
	return l.append(ctx, msg, s, expected)
}
