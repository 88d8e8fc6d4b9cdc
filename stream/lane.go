package stream

// The lane protocol. A lane has one writer at a time and at most one message in flight, whose
// expected last sequence is the fence: JetStream refuses a record whose writer no longer is the
// newest. What a step writes, over all its attempts:
//
//	main: … done(step 1)   open(step 2)  attempt(w1) events(w1) events(w1) ✗
//	                                     attempt(w2) events(w2) done(w2)     open(step 3) …
//
// open is written once, whoever comes first; attempt voids what the attempt before it left
// unfinished; done holds the result, so a later attempt that finds it returns it and does nothing.
//
// Every entry names the last record that the workflow knew of (after). It is what tells a late
// attempt of an old step from a new attempt of the present one: a lane that went on in other hands
// fences it off.

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

// Place is where in a run a step writes.
type Place struct {
	Run  Run
	Lane Lane
	// Step is the same for every attempt of a step and unlike every other step's of the run.
	Step string
	// Then is the step that whoever finishes this one goes on with, before it is known elsewhere that it is finished: to
	// an attempt that comes late that is no other hand. "" = none.
	Then string
	// Execution names the workflow execution; a run that another execution began is not touched.
	Execution string
	// After is the sequence of the lane's last record as the workflow knows it, 0 for none.
	After uint64
	// Since is where the lane's present use begins: a slot is used again, and what stands there up to here is
	// over. It serves who has not written there yet.
	Since uint64
	// Agent is set where a run is sealed whose agent has handed the thread over: the one that has it now.
	Agent string
	// Subagent is whose events are written, by its subagentRunId; empty = the run's own agent's.
	Subagent string
}

// executionTag begins every writer's name.
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

// ours judges the lane's last record from a step's point of view.
func (p Place) ours(last *Record) (begun bool, err error) {
	switch found := lastSeq(last); {
	case found == p.After, p.After == 0 && found <= p.Since:
		return false, nil
	case found < p.After:
		return false, fmt.Errorf("%w: lane %s of run %q ends at %d, not at %d", ErrLogLost, p.Lane, p.Run.ID, found, p.After)
	case last.Kind == KindTerminal, last.Kind == KindSupersede, !p.has(last.Step), !last.writtenFor(p.Execution):
		return false, ErrOver
	default:
		return true, nil
	}
}

func (p Place) has(step string) bool { return step == p.Step || p.Then != "" && step == p.Then }

// Open writes the lifecycle events of a step unless that has been done, and returns where the lane
// ends without an attempt of the step: at that record, or, where attempts have come behind it already,
// at Place.After. note is kept beside the events, for reduction; nil = none.
//
// It writes first and looks only if it is refused: as a rule the lane ends where the workflow knows.
func (l *Log) Open(ctx context.Context, p Place, note any, events ...agui.Event) (uint64, error) {
	for {
		_, steers := note.(Steering)
		s := stamp{kind: KindOpen, step: p.Step, writer: newWriter(p.Execution), shared: steers}
		seq, err := l.put(ctx, p, s, p.After, note, events)
		if !errors.Is(err, ErrFenced) {
			return seq, err
		}
		last, err := l.lastOfLane(ctx, l.laneSubject(p.Run, p.Lane))
		if err != nil {
			return 0, err
		}
		begun, err := p.ours(last)
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

// Begin makes the caller the only writer of a lane for one attempt of a step. If an earlier attempt
// finished the step, its last record is returned instead and nothing is written. Place.After may be
// what Open returned. Like Open, it looks only if it is refused.
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
		found, err := l.lastOfLane(ctx, l.laneSubject(p.Run, p.Lane))
		if err != nil {
			return nil, nil, err
		}
		begun, err := p.ours(found)
		if err != nil {
			return nil, nil, err
		}
		if begun && found.Kind == KindDone {
			return nil, found, nil
		}
		last, resumed = lastSeq(found), begun && found.Kind != KindOpen
	}
}

// Succeed prepares a lane for a step which comes behind one that has failed: that one is opened, unless it was, with
// note and events as [Log.Open] has them, and what it has left is withdrawn. Succeed returns where the lane ends
// then, for Place.After of the step.
func (l *Log) Succeed(ctx context.Context, p, failed Place, note any, events ...agui.Event) (uint64, error) {
	for {
		last, err := l.lastOfLane(ctx, l.laneSubject(p.Run, p.Lane))
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
		if last, err = l.lastOfLane(ctx, l.laneSubject(p.Run, p.Lane)); err != nil {
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

// Supersede takes a lane over that its step did not finish, so that whoever may still write there
// is fenced off. With keep what the unfinished attempt has said is kept and closed, else it is
// withdrawn. A tool's lane is taken over even if the step did not begin: the run's end would not keep
// a late attempt from calling the tool. A finished step, and a main lane that is idle, are left alone.
func (l *Log) Supersede(ctx context.Context, p Place, keep bool) error {
	var partial saying
	for {
		last, err := l.lastOfLane(ctx, l.laneSubject(p.Run, p.Lane))
		if err != nil {
			return err
		}
		begun := lastSeq(last) > max(p.After, p.Since)
		switch {
		case !begun && p.Lane.speaks(), begun && last.Kind != KindAttempt && last.Kind != KindEvents:
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

// Seal ends a run with its terminal event, after which nothing of it counts. If it is ended already,
// the record that did it is returned and nothing is written: the first one stands.
func (l *Log) Seal(ctx context.Context, p Place, events ...agui.Event) (uint64, *Record, error) {
	for {
		last, err := l.lastOfLane(ctx, l.laneSubject(p.Run, LaneMain))
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

// put writes one record of a lane.
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
	return l.write(ctx, l.laneSubject(p.Run, p.Lane), s, expected, lines, result)
}

// write puts what is too large for a frame aside and appends the record.
func (l *Log) write(ctx context.Context, subject string, s stamp, expected uint64, events [][]byte, result []byte) (uint64, error) {
	return l.writeOn(ctx, subject, s, expected, events, result, nil)
}

// writeOn is write on a mark, unless that is nil.
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

// encode makes lines of events, each told whose it is.
func (p Place) encode(events []agui.Event) ([][]byte, error) {
	lines := make([][]byte, 0, len(events))
	for _, e := range events {
		agui.Attribute(e, p.Subagent)
		line, err := agui.Encode(e)
		if err != nil {
			return nil, fmt.Errorf("stream: encode %s: %w", e.EventType(), err)
		}
		lines = append(lines, line)
	}
	return lines, nil
}
