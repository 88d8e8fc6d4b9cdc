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
	store      *snapshot.Store
	thread     stream.Thread
	reader     reader            // how the next run is shown; followed and heal of a cursor apply to the first run only
	superseded map[string]uint64 // of all runs; the view fills it run by run
	follow     bool              // show later runs too; else the view ends with the run that is active now
	run        *Projection       // the run that is shown, or the last one; nil = none yet
}

// Add projects the next record of the thread. A record that does not belong to the run that began
// last has no frames.
func (t *threadProjection) Add(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	switch {
	case rec.Kind == stream.KindFork && t.run == nil:
		return t.inherited(ctx, rec)
	case rec.OpensRun():
		return t.open(ctx, rec)
	case t.run == nil, rec.RunToken() != stream.Token(t.run.run.ID):
		return nil, nil // a late record of the run before, whose workflow was terminated from outside
	}
	return t.run.Add(ctx, rec)
}

// open begins the next run. It first closes the run before, if that has no terminal record, with
// frames of the same record.
func (t *threadProjection) open(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	var o stream.Opening
	if err := rec.Result(ctx, &o); err != nil {
		return nil, err
	}
	before := t.run
	t.run = newProjection(t.store, stream.Run{Thread: t.thread, ID: o.RunID}, t.reader, t.superseded)
	t.run.history = true
	t.reader.followed, t.reader.heal = true, false // a cursor is about its own run only
	var frames []Frame
	t.run.at(rec.Seq)
	if before != nil && !before.terminal && !t.reader.joining {
		var err error
		if frames, err = before.abandon(ctx, rec.Seq); err != nil {
			return nil, err
		}
		t.run.continueAfter(before)
	}
	more, err := t.run.project(ctx, rec)
	if !t.reader.joining && t.reader.profile == "" {
		t.reader.profile = t.run.profile // the first shown run decides the generation of all
	}
	return append(frames, more...), err
}

// prelude returns the prelude of a joining reader. A thread without a run has none: its first run
// is shown like any later one.
func (t *threadProjection) prelude(ctx context.Context) ([]Frame, error) {
	t.reader.joining = false
	if t.run == nil || !t.run.joining {
		return nil, nil
	}
	t.reader.profile = t.run.profile
	return t.run.prelude(ctx)
}

// over reports whether the reader was shown all that it wants: without follow, the end of the run
// that was active when it attached.
func (t *threadProjection) over() bool {
	return !t.follow && (t.run == nil || t.run.over())
}

// current returns the run that is being shown; false = none has begun, or the last one has ended.
func (t *threadProjection) current() (stream.Run, bool) {
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
	p.at(seq)
	p.cursorUnseen = p.outstanding(stream.Unseen{Shown: stream.Position{Seq: last}, SupersededAt: seq})
	p.heal = false // the next run begins with a snapshot
	end, err := agui.Encode(&agui.RunError{Code: CodeAbandoned, Message: "the run did not end before the next one began"})
	if err != nil {
		return nil, err
	}
	err = p.close(ctx, [][]byte{end})
	return p.handOut(), err
}

// introduce gives a reader that did not send the run's input the conversation and the state that
// the run begins with. A snapshot does not reorder the messages of a client, so if the conversation
// was cut, a snapshot of the kept messages comes first. Reasoning and activities that the input has
// cut are sent empty, because clients would keep them.
func (p *Projection) introduce(ctx context.Context, seq uint64, o *stream.Opening) error {
	var back residue
	if o.Accepted.Cut {
		if err := p.emitFirst(ctx, seq, o.Accepted.Keep); err != nil {
			return err
		}
		if p.due() {
			r, err := p.store.At(ctx, p.run.Thread, seq)
			if err != nil {
				return err
			}
			back = cutResidue(r)
		}
	}
	back.state = true
	return p.emitSnapshots(ctx, seq, back)
}

// cutResidue returns the messages that the last run's input has cut and that clients keep without a
// correction.
func cutResidue(r *snapshot.Snapshot) residue {
	var cut residue
	for _, m := range r.Cut {
		if m.Role == agui.RoleReasoning {
			cut.reasoningIDs = append(cut.reasoningIDs, m.ID)
		} else {
			cut.activity(m.ID, m.ActivityType)
		}
	}
	return cut
}

// inherited shows the content of a fork before its first run. A stream of AG-UI events consists of
// runs, so it is shown as a run that has ended, with the origin as parent. No such run is in the
// log.
func (t *threadProjection) inherited(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	var note snapshot.Content
	if err := rec.Result(ctx, &note); err != nil {
		return nil, err
	}
	profile := t.reader.profile
	if profile == "" {
		profile = stream.ProfileOf(note.Origin.ProtocolVersion)
	}
	run := stream.Run{Thread: t.thread}.Identify("fork", "")
	var frames []Frame
	for i, e := range []agui.Event{
		&agui.RunStarted{ThreadID: t.thread.ID, RunID: run, ParentRunID: note.Origin.Run, ProtocolVersion: agui.Version},
		&agui.MessagesSnapshot{Messages: (&snapshot.Snapshot{Entries: note.Entries}).Messages()},
		&agui.StateSnapshot{Snapshot: note.State},
		&agui.RunFinished{ThreadID: t.thread.ID, RunID: run},
	} {
		at := stream.Position{Seq: rec.Seq, Index: i}
		if t.reader.from != nil && !t.reader.from.Position.Before(at) {
			continue
		}
		raw, err := agui.Encode(e)
		if err != nil {
			return nil, err
		}
		kind, event, err := Speak(profile, e.EventType(), raw)
		if err != nil {
			return nil, err
		}
		frames = append(frames, Frame{Type: kind, Event: event, Cursor: stream.Cursor{Position: at, Profile: profile, Epoch: t.store.Log().Epoch(), Spectator: true}})
	}
	return frames, nil
}
