package view

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Projection turns the records of one run into the frames of one reader. It is a function of the
// log up to now, the reader's profile, and where the reader starts. Retractions, closing events and
// snapshots are computed here and never logged. A Projection is used by one goroutine.
//
// A superseded attempt is hidden from readers that attach after the record that superseded it. A
// reader that was shown a part of it, live or before it reconnected, gets a retraction of just that
// part. So a projection that starts at a cursor first replays the run from its beginning without
// frames: the replay tells what the reader has open, and the cursor tells how far it had read.
//
// The position of an event counts all events that any reader could be shown of the record, whether
// this reader is sent a frame or not: p.index advances for hidden events as well. So the same event
// has the same position for every reader.
//
// A retraction has the order that clients of both generations handle correctly (measured): end open
// texts, send a snapshot without the retracted messages, and only then end open tool calls, because
// a client acts on a truncated call that ends while its message exists.
type Projection struct {
	store      *snapshot.Store
	run        stream.Run
	profile    stream.Profile
	resume     stream.Position   // the reader's cursor: frames up to here are not sent again
	unseen     []stream.Unseen   // of the cursor: how far the reader was shown attempts that are superseded after it
	superseded map[string]uint64 // superseded writers, with the record that superseded each; shared, read-only

	followed  bool    // the reader did not send the run's input
	history   bool    // a run that has ended is shown as history, if the reader joins
	joining   bool    // the prelude is still to come; until then records have no frames
	heal      bool    // a snapshot precedes the run's last event in any case
	retracted residue // of superseded attempts while the reader joins: an old list of the client may have it

	lanes         map[stream.Lane]*laneView // unfinished attempts, by lane
	scopes        scopes                    // open steps, and subagents
	started       []byte                    // RUN_STARTED
	ended         [][]byte                  // the events of the terminal record
	anySuperseded bool                      // an attempt that had written events was superseded
	terminal      bool                      // the terminal record was projected: later records do not count
	output
}

// output is what one record becomes: the frames that the projection is about to hand out.
type output struct {
	record       uint64          // sequence of the record that is being projected
	index        int             // of the last event of that record; -1 = none yet
	cursorUnseen []stream.Unseen // Cursor.Unseen of the record's frames
	frames       []Frame         // of the record, until handOut
}

// NewProjection returns the projection of a run for a reader with a cursor, or without one (nil).
// past are the records that the log has of the run when the reader attaches: attempts that they
// supersede are hidden. The caller then adds the records, those of past first.
func NewProjection(s *snapshot.Store, run stream.Run, profile stream.Profile, from *stream.Cursor, past []*stream.Record) *Projection {
	d := newSupersessions()
	for _, rec := range past {
		d.add(rec)
	}
	return newProjection(s, run, readerOf(profile, from), d.at)
}

// newProjection returns the projection of a run for a reader; superseded are the attempts that are
// known to be superseded.
func newProjection(s *snapshot.Store, run stream.Run, r reader, superseded map[string]uint64) *Projection {
	p := &Projection{
		store: s, run: run, profile: r.profile, superseded: superseded, lanes: map[stream.Lane]*laneView{},
		followed: r.followed, heal: r.heal, joining: r.joining,
	}
	if r.from != nil {
		p.resume, p.unseen = r.from.Position, r.from.Unseen
	}
	return p
}

// Add projects the next record of the run, in the order of the log, and returns its frames, which
// belong to the caller. It reads snapshots from the store, and large events from the object store;
// after an error the projection must not be used again.
func (p *Projection) Add(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	if p.terminal {
		return nil, nil // the run is sealed: later records do not count
	}
	p.at(rec.Seq)
	return p.project(ctx, rec)
}

// at begins the frames of a record.
func (p *Projection) at(seq uint64) {
	p.record, p.index = seq, -1
	p.cursorUnseen = p.outstanding()
}

// continueAfter continues the frames of a record after those that the projection q, of the run
// before, has made of it: their indexes must not collide.
func (p *Projection) continueAfter(q *Projection) {
	p.record, p.index, p.cursorUnseen = q.record, q.index, q.cursorUnseen
}

// project makes the frames of the current record. Records of other kinds (mark, cancel, audit) have
// none.
func (p *Projection) project(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	var err error
	switch rec.Kind {
	case stream.KindOpen:
		err = p.open(ctx, rec)
	case stream.KindAttempt:
		err = p.attempt(ctx, rec)
	case stream.KindEvents, stream.KindDone:
		err = p.events(ctx, rec)
	case stream.KindSupersede:
		err = p.supersede(ctx, rec)
	case stream.KindTerminal:
		err = p.end(ctx, rec)
	}
	return p.handOut(), err
}

// handOut returns the frames of a record, and keeps no reference to them: a view may be idle for
// hours.
func (p *Projection) handOut() []Frame {
	frames := p.frames
	p.frames = nil
	return frames
}

// over reports whether the run has ended and its end was shown.
func (p *Projection) over() bool { return p.terminal && !p.joining }

// current returns the run, whether it has begun or not.
func (p *Projection) current() (stream.Run, bool) { return p.run, true }

// lane returns the open attempt of a lane, or a new one without a writer.
func (p *Projection) lane(lane stream.Lane) *laneView {
	v := p.lanes[lane]
	if v == nil {
		v = &laneView{}
		p.lanes[lane] = v
	}
	return v
}

// open shows an open record: lifecycle events, and the interrupts of a held run. After RUN_STARTED
// it gives the reader the conversation and the state with which the run begins, where they may
// differ from the client's. After a steering it sends the conversation with the new messages.
func (p *Projection) open(ctx context.Context, rec *stream.Record) error {
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	var opening *stream.Opening
	if rec.OpensRun() {
		opening = new(stream.Opening)
		if err := rec.Result(ctx, opening); err != nil {
			return err
		}
		if p.profile == "" {
			p.profile = stream.ProfileOf(opening.ProtocolVersion)
		}
		p.heal = p.heal || opening.Edits
	}
	questions, _, err := stream.ParseHeld(events)
	if err != nil {
		return err
	}
	p.heal = p.heal || len(questions) > 0 // an approver may edit arguments that readers have seen
	for i, e := range events {
		if err := p.scopes.track(e, stream.Position{Seq: rec.Seq, Index: i}); err != nil {
			return err
		}
		if err := p.show(e); err != nil {
			return err
		}
		if opening == nil || agui.TypeOf(e) != agui.EventRunStarted {
			continue
		}
		p.started = e
		if p.followed {
			err = p.introduce(ctx, rec.Seq, opening)
		} else {
			err = p.correct(ctx, rec.Seq, opening)
		}
		if err != nil {
			return err
		}
	}
	if rec.Steers() { // the step begins: its lane has no open message that the snapshot could cut
		return p.emitSnapshots(ctx, rec.Seq, residue{})
	}
	return nil
}

// attempt notes that a new attempt holds the lane, and retracts the unfinished one before it.
func (p *Projection) attempt(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	delete(p.lanes, rec.Lane)
	if v.writer != "" && v.writer != rec.Writer {
		if err := p.retract(ctx, v); err != nil {
			return err
		}
	}
	p.lanes[rec.Lane] = &laneView{writer: rec.Writer, from: rec.Seq, supersededAt: p.superseded[rec.Writer]}
	return nil
}

// events shows the events of an attempt, except for those that are hidden from the reader. A done
// record also closes the lane, and only then do its steps and subagents count as ended.
func (p *Projection) events(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	if v.writer != rec.Writer {
		return nil // the fence excludes this; a superseded writer is never shown
	}
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	v.wrote = v.wrote || len(events) > 0
	for i, e := range events {
		at := stream.Position{Seq: rec.Seq, Index: i}
		if p.hides(rec.Writer, at) {
			v.hide(at)
			p.index++
			if p.joining {
				if err := p.retracted.note(e); err != nil {
					return err
				}
			}
			continue
		}
		v.shown = at
		if err := v.track(e); err != nil {
			return err
		}
		if p.joining {
			v.said = append(v.said, heldEvent{at, e})
		}
		if err := p.show(e); err != nil {
			return err
		}
	}
	if rec.Kind == stream.KindDone {
		delete(p.lanes, rec.Lane)
		return p.scopes.trackAll(events, rec.Seq)
	}
	return nil
}

// supersede closes a lane whose step has no further attempt. It retracts the unfinished attempt,
// or, if the record has a result, ends its open messages and keeps them.
func (p *Projection) supersede(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	delete(p.lanes, rec.Lane)
	if !rec.HasResult() {
		return p.retract(ctx, v)
	}
	return p.emit(slices.Concat(v.closingEvents(), v.callEnds())...)
}

// retract tells the reader to drop the events that it was shown of a superseded attempt. It sends
// nothing if there are none.
func (p *Projection) retract(ctx context.Context, v *laneView) error {
	p.anySuperseded = p.anySuperseded || v.wrote
	if p.joining {
		p.retracted.add(v.residue)
	}
	if v.shown == (stream.Position{}) {
		return nil
	}
	p.cursorUnseen = p.outstanding(stream.Unseen{Shown: v.shown, SupersededAt: p.record})
	if err := p.emit(v.closingEvents()...); err != nil {
		return err
	}
	back := v.residue
	back.othersWriting = true
	if err := p.emitSnapshots(ctx, p.record, back); err != nil {
		return err
	}
	return p.emit(v.callEnds()...)
}

// end shows the terminal record. It first closes everything that is open: the writer of the
// terminal record need not know of an attempt that wrote just before it. If an attempt of the run
// was superseded, a full snapshot precedes the last event: it corrects clients that store and
// replay events.
func (p *Projection) end(ctx context.Context, rec *stream.Record) error {
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	return p.close(ctx, events)
}

// close ends everything that is open, shows the last events of the run, and makes the run terminal.
func (p *Projection) close(ctx context.Context, events [][]byte) error {
	var closings, callEnds []agui.Event
	var back residue
	for _, lane := range slices.Sorted(maps.Keys(p.lanes)) {
		v := p.lanes[lane]
		p.anySuperseded = p.anySuperseded || v.writer != "" && v.wrote
		closings = append(closings, v.closingEvents()...)
		callEnds = append(callEnds, v.callEnds()...)
		back.add(v.residue)
	}
	closings = append(closings, p.scopes.closings()...)
	if err := p.emit(closings...); err != nil {
		return err
	}
	requested, err := asksForAnswers(events)
	if err != nil {
		return err
	}
	back.state = back.state || requested // clients decide on the whole state
	if p.anySuperseded || p.heal || requested {
		if err := p.emitSnapshots(ctx, p.record, back); err != nil {
			return err
		}
	}
	if err := p.emit(callEnds...); err != nil {
		return err
	}
	for _, e := range events {
		if err := p.show(e); err != nil {
			return err
		}
	}
	p.terminal, p.ended = true, events
	return nil
}

// asksForAnswers reports whether the last of a run's events says that the run ended with
// interrupts.
func asksForAnswers(events [][]byte) (bool, error) {
	if len(events) == 0 || agui.TypeOf(events[len(events)-1]) != agui.EventRunFinished {
		return false, nil
	}
	e, err := agui.Decode(events[len(events)-1])
	if err != nil {
		return false, err
	}
	finished, ok := e.(*agui.RunFinished)
	return ok && finished.Outcome != nil && finished.Outcome.Type == agui.OutcomeInterrupt, nil
}

// emit shows events that the projection has computed, in the order given.
func (p *Projection) emit(events ...agui.Event) error {
	for _, e := range events {
		raw, err := agui.Encode(e)
		if err != nil {
			return err
		}
		if err := p.show(raw); err != nil {
			return err
		}
	}
	return nil
}

// show gives an event the next position, and makes a frame of it unless the reader has been sent
// the event before or joins.
func (p *Projection) show(raw json.RawMessage) error {
	p.index++
	at := stream.Position{Seq: p.record, Index: p.index}
	if p.joining || !p.resume.Before(at) {
		return nil
	}
	kind, event, err := Speak(p.profile, agui.TypeOf(raw), raw)
	if err != nil {
		return err
	}
	p.frames = append(p.frames, Frame{Type: kind, Event: event, Cursor: p.cursor(at)})
	return nil
}

// cursor returns the cursor of the event at a position of the current record.
func (p *Projection) cursor(at stream.Position) stream.Cursor {
	return stream.Cursor{Position: at, Profile: p.profile, Epoch: p.store.Log().Epoch(), Spectator: p.followed, Heal: p.heal, Unseen: p.cursorUnseen}
}
