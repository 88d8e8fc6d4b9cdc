package view

import (
	"context"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// threadProjection shows a thread: one run after the other, each by a Projection of its own, and
// closed before the next one begins. The reader did not send the inputs, so the conversation and
// the state with which a run begins follow its RUN_STARTED.
type threadProjection struct {
	store        *snapshot.Store
	thread       stream.Thread
	reader       reader            // how the next run is shown; spectator and heal of a cursor apply to the first run only
	superseded   map[string]uint64 // of all runs; the view fills it run by run
	includeLater bool              // show later runs too; else the view ends with the run that is active now
	run          *Projection       // the run that is shown, or the last one; nil = none yet
}

// Add projects the next record of the thread. A record that does not belong to the run that began
// last has no frames.
func (t *threadProjection) Add(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	switch {
	case rec.Kind == stream.KindFork && t.run == nil:
		return t.onFork(ctx, rec)
	case rec.OpensRun():
		return t.openRun(ctx, rec)
	case t.run == nil, rec.RunToken() != stream.Token(t.run.run.ID):
		return nil, nil // a late record of the run before, whose workflow was terminated from outside
	}
	return t.run.Add(ctx, rec)
}

// openRun begins the next run. It first closes the run before, if that has no terminal record, with
// frames of the same record.
func (t *threadProjection) openRun(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	var o stream.Opening
	if err := rec.Result(ctx, &o); err != nil {
		return nil, err
	}
	previous := t.run
	t.run = newProjection(t.store, stream.Run{Thread: t.thread, ID: o.RunID}, t.reader, t.superseded)
	t.run.history = true
	t.reader.spectator, t.reader.heal = true, false // a cursor is about its own run only
	var frames []Frame
	t.run.beginRecord(rec.Seq)
	if previous != nil && !previous.terminal && !t.reader.joining {
		var err error
		if frames, err = previous.abandon(ctx, rec.Seq); err != nil {
			return nil, err
		}
		t.run.continueAfter(previous)
	}
	added, err := t.run.project(ctx, rec)
	if !t.reader.joining && t.reader.generation == "" {
		t.reader.generation = t.run.generation // the first shown run decides the generation of all
	}
	return append(frames, added...), err
}

// prelude returns the prelude of a joining reader. A thread without a run has none: its first run
// is shown like any later one.
func (t *threadProjection) prelude(ctx context.Context) ([]Frame, error) {
	t.reader.joining = false
	if t.run == nil || !t.run.joining {
		return nil, nil
	}
	t.reader.generation = t.run.generation
	return t.run.prelude(ctx)
}

// hasEnded reports whether the reader was shown all that it wants: without includeLater, the end of
// the run that was active when it attached.
func (t *threadProjection) hasEnded() bool {
	return !t.includeLater && (t.run == nil || t.run.hasEnded())
}

// currentRun returns the run that is being shown; false = none has begun, or the last one has
// ended.
func (t *threadProjection) currentRun() (stream.Run, bool) {
	if t.run == nil || t.run.terminal {
		return stream.Run{}, false
	}
	return t.run.run, true
}

// CodeAbandoned is the code of the RUN_ERROR that closes a run without a terminal record, when the
// next run of its thread begins.
const CodeAbandoned = "abandoned"

// abandon shows a RUN_ERROR as the end of a run without a terminal record. seq is the record that
// begins the next run; the frames belong to that record.
func (p *Projection) abandon(ctx context.Context, seq uint64) ([]Frame, error) {
	last := p.record
	p.beginRecord(seq)
	p.cursorShownParts = p.shownPartEntries(stream.ShownPart{Shown: stream.Position{Seq: last}, SupersededAt: seq})
	p.needsSnapshot = false // the next run begins with a snapshot
	end, err := agui.Encode(&agui.RunError{Code: CodeAbandoned, Message: "the run did not end before the next one began"})
	if err != nil {
		return nil, err
	}
	err = p.closeRun(ctx, [][]byte{end}, ending{})
	return p.takeFrames(), err
}

// emitForSpectator gives a reader that did not send the run's input the conversation and the state
// that the run begins with. A snapshot does not reorder the messages of a client, so if the
// conversation was cut, a snapshot of the kept messages comes first. Reasoning and activities that
// the input has cut are sent empty, because clients would keep them.
func (p *Projection) emitForSpectator(ctx context.Context, seq uint64, o *stream.Opening) error {
	var c correction
	if o.Accepted.Cut {
		if err := p.emitBeginning(ctx, seq, o.Accepted.Keep); err != nil {
			return err
		}
		if p.isDue() {
			snap, err := p.store.At(ctx, p.run.Thread, seq)
			if err != nil {
				return err
			}
			c = cutCorrection(snap)
		}
	}
	c.needsState = true
	return p.emitSnapshots(ctx, seq, c)
}

// cutCorrection returns the messages that the last run's input has cut and that clients keep
// without a correction.
func cutCorrection(snap *snapshot.Snapshot) correction {
	var c correction
	for _, m := range snap.Cut {
		if m.Role == agui.RoleReasoning {
			c.reasoningIDs = append(c.reasoningIDs, m.ID)
		} else {
			c.addActivity(m.ID, m.ActivityType)
		}
	}
	return c
}

// onFork shows the content of a fork before its first run. A stream of AG-UI events consists of
// runs, so it is shown as a run that has ended, with the origin as parent. No such run is in the
// log.
func (t *threadProjection) onFork(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	var content snapshot.Content
	if err := rec.Result(ctx, &content); err != nil {
		return nil, err
	}
	generation := t.reader.generation
	if generation == "" {
		generation = stream.GenerationOf(content.Origin.ProtocolVersion)
	}
	run := stream.Run{Thread: t.thread}.Identify("fork", "")
	var frames []Frame
	for i, e := range []agui.Event{
		&agui.RunStarted{ThreadID: t.thread.ID, RunID: run, ParentRunID: content.Origin.Run, ProtocolVersion: agui.Version},
		&agui.MessagesSnapshot{Messages: (&snapshot.Snapshot{Entries: content.Entries}).Messages()},
		&agui.StateSnapshot{Snapshot: content.State},
		&agui.RunFinished{ThreadID: t.thread.ID, RunID: run},
	} {
		position := stream.Position{Seq: rec.Seq, Index: i}
		if t.reader.from != nil && !t.reader.from.Position.Before(position) {
			continue
		}
		raw, err := agui.Encode(e)
		if err != nil {
			return nil, err
		}
		kind, event, err := Downgrade(generation, e.EventType(), raw)
		if err != nil {
			return nil, err
		}
		frames = append(frames, Frame{Type: kind, Event: event, Cursor: stream.Cursor{Position: position, Generation: generation, Epoch: t.store.Log().Epoch(), Spectator: true}})
	}
	return frames, nil
}
