package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// ForkKind is the kind of a fork point.
type ForkKind string

// The kinds of fork points.
const (
	// ForkTurn is the end of a turn: the model's calls have their results.
	ForkTurn ForkKind = "turn"
	// ForkStep is the end of a step of a pipeline or program that is in no branch.
	ForkStep ForkKind = "step"
	// ForkEnd is the end of the run.
	ForkEnd ForkKind = "end"
)

// ForkPoint is a place in a run where a fork may begin: no tool call is without a result, and no
// attempt is under way.
type ForkPoint struct {
	// Position is that of the STEP_FINISHED, or of the last record of the run.
	stream.Position

	Time time.Time
	Kind ForkKind
	// Name is the name of the turn's step, or the path of a pipeline's step; "" = the end of the run.
	Name string
	// MessageID is the ID of the last message that clients see; "" = there is none.
	MessageID string

	before uint64 // sequence of the record before that of Position
}

// IsAt reports whether a position from a client is this point. All positions of the run's last record
// are its end, because readers may get different events before the last one.
func (p ForkPoint) IsAt(position stream.Position) bool {
	return p.Position == position || p.Kind == ForkEnd && p.Seq == position.Seq
}

// ForkPoints returns the fork points of a run in the order of the log, whether it is active or has
// ended. A step of a pipeline is one when the next step begins: there is no place after the last one.
// It reads all records of the run.
func (s *Store) ForkPoints(ctx context.Context, run stream.Run) ([]ForkPoint, error) {
	opening, err := s.log.First(ctx, s.log.LaneSubject(run, stream.LaneMain), 1)
	if err != nil || opening == nil || !opening.OpensRun() {
		return nil, err
	}
	last, err := s.log.Last(ctx, s.log.RunSubject(run)+".>")
	if err != nil || last == nil {
		return nil, err
	}
	base, err := s.At(ctx, run.Thread, opening.Seq)
	if err != nil {
		return nil, err
	}
	scan := forkScan{folder: newFolder(s.log, run.Thread, base), turns: map[string]bool{}}
	if err := scan.read(ctx, opening); err != nil {
		return nil, err
	}
	for rec, err := range s.log.Records(ctx, s.log.ThreadSubject(run.Thread)+".>", opening.Seq+1, last.Seq) {
		if err == nil {
			err = scan.read(ctx, rec)
		}
		if err == nil {
			err = scan.folder.add(ctx, rec)
		}
		if err != nil {
			return nil, err
		}
		if rec.Kind == stream.KindTerminal && rec.RunToken() == opening.RunToken() {
			end := ForkPoint{Position: stream.Position{Seq: rec.Seq, Index: stream.MaxIndex}, Time: rec.Time, Kind: ForkEnd, MessageID: scan.folder.lastShown()}
			return append(scan.points, end), nil
		}
	}
	return scan.points, nil
}

// forkScan finds the fork points of a run. Its folder has the records before the one that is read.
type forkScan struct {
	folder   *folder
	points   []ForkPoint
	turns    map[string]bool // the steps that are turns, by name
	finished []ForkPoint     // steps of a pipeline after which no other has begun yet
}

// read finds the fork points in a record. Advances of a pipeline begin and finish its steps in done
// records, and turns begin in open records. Names of turns in the steps of a pipeline have a slash.
func (s *forkScan) read(ctx context.Context, rec *stream.Record) error {
	if rec.Lane != stream.LaneMain || !rec.OpensStep() && rec.Kind != stream.KindDone {
		return nil
	}
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	var result stream.Result
	if rec.Kind == stream.KindDone && slices.ContainsFunc(events, isStepEvent) {
		if err := rec.Result(ctx, &result); err != nil {
			return err
		}
	}
	for i, raw := range events {
		if !isStepEvent(raw) {
			continue
		}
		e, err := agui.Decode(raw)
		if err != nil {
			return err
		}
		switch e := e.(type) {
		case *agui.StepStarted:
			s.points, s.finished = append(s.points, s.finished...), nil
			s.turns[e.StepName] = rec.OpensStep() && !strings.Contains(e.StepName, "/")
		case *agui.StepFinished:
			s.finish(rec, i, e, result.Finished)
		}
	}
	return nil
}

// isStepEvent reports whether an event begins or ends a step.
func isStepEvent(raw []byte) bool {
	t := agui.TypeOf(raw)
	return t == agui.EventStepStarted || t == agui.EventStepFinished
}

// finish notes that a step has ended at an event of a record. steps are the pipeline's steps that the
// record has finished.
func (s *forkScan) finish(rec *stream.Record, index int, e *agui.StepFinished, steps []stream.FinishedStep) {
	if e.SubagentRunID != "" || !s.folder.isSettled() {
		return
	}
	p := ForkPoint{
		Position: stream.Position{Seq: rec.Seq, Index: index}, Time: rec.Time, Kind: ForkTurn, Name: e.StepName,
		MessageID: s.folder.lastShown(), before: s.folder.previousSeq,
	}
	if i := slices.IndexFunc(steps, func(step stream.FinishedStep) bool { return step.Index == index }); i >= 0 {
		p.Kind, p.Name = ForkStep, steps[i].Path
		s.finished = append(s.finished, p)
	} else if s.turns[e.StepName] {
		s.points = append(s.points, p)
	}
}

// isSettled reports whether no attempt is under way, and no call of an agent is without a result.
func (f *folder) isSettled() bool {
	return len(f.snap.Pending) == 0 && !slices.ContainsFunc(f.snap.Journal.Changes, change.isOpen) && len(f.snap.openCalls()) == 0
}

// lastShown returns the ID of the last message that clients see; "" = there is none.
func (f *folder) lastShown() string {
	for _, e := range slices.Backward(f.snap.Entries) {
		if m, ok := e.Shown(); ok {
			return m.ID
		}
	}
	return ""
}

// atForkPoint returns the snapshot at a fork point of a run, which ForkPoints has returned. The
// record that ends the step also begins the next one: only its changes of the state up to the end of
// the step count.
func (s *Store) atForkPoint(ctx context.Context, run stream.Run, p *ForkPoint) (*Snapshot, error) {
	base, err := s.At(ctx, run.Thread, p.before)
	if err != nil {
		return nil, err
	}
	rec, err := s.log.At(ctx, p.Seq)
	if err == nil && rec == nil {
		err = stream.ErrGone
	}
	if err != nil {
		return nil, err
	}
	f := newFolder(s.log, run.Thread, base)
	if rec.Kind == stream.KindDone {
		events, err := rec.Events(ctx)
		if err != nil {
			return nil, err
		}
		if p.Index >= len(events) {
			return nil, errors.New("snapshot: the fork point is not in its record")
		}
		for _, raw := range events[:p.Index+1] {
			if t := agui.TypeOf(raw); t == agui.EventStateSnapshot || t == agui.EventStateDelta {
				f.snap.Journal.Changes = append(f.snap.Journal.Changes, change{Event: raw})
			}
		}
		f.snap.Journal.foldCommitted()
	}
	return f.snapshot(p.before), nil
}
