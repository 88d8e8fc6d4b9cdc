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
// snapshots are computed here and never logged.
//
// A superseded attempt is hidden from readers that come after the record that superseded it. A
// reader that saw a part of it, live or before it reconnected, gets a retraction of just that part.
// So a projection that starts at a cursor first replays the run from its beginning without frames:
// it learns what the reader has open, and the cursor says how far the reader had got.
//
// A retraction has an order that clients of both generations end right with (measured): end open
// texts, send a snapshot without the retracted messages, and only then end open tool calls, because
// a client acts on a truncated call that ends while its message stands.
type Projection struct {
	store      *snapshot.Store
	run        stream.Run
	profile    stream.Profile
	resume     stream.Position   // frames up to here are not sent again
	unseen     []stream.Unseen   // what the cursor says of attempts that were superseded since
	superseded map[string]uint64 // superseded writers, with the record that superseded each

	followed  bool    // the reader did not send the run's input
	history   bool    // a run that has ended is shown as history, if the reader joins
	joining   bool    // there are no frames before the prelude
	heal      bool    // a snapshot precedes the run's last event in any case
	retracted residue // of superseded attempts while the reader joins: it may have seen some of it

	lanes         map[stream.Lane]*laneView
	scopes        scopes
	started       []byte   // RUN_STARTED
	ended         [][]byte // the events of the terminal record
	anySuperseded bool     // an attempt that had written events was superseded
	terminal      bool
	record        uint64
	index         int
	told          []stream.Unseen // in the cursors of the record's frames
	frames        []Frame
}

// NewProjection returns the projection of a run for a reader that comes when the log has some
// records of the run, with a cursor or without one (nil). Those records decide which attempts are
// shown.
func NewProjection(s *snapshot.Store, run stream.Run, profile stream.Profile, from *stream.Cursor, past []*stream.Record) *Projection {
	d := newSupersessions()
	for _, rec := range past {
		d.add(rec)
	}
	return newProjection(s, run, readerOf(profile, from), d.at)
}

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

// Add projects the next record of the run, and returns its frames, which are the caller's.
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
	p.told = p.outstanding()
}

// continueAfter continues the frames of a record of which another projection has shown some.
func (p *Projection) continueAfter(q *Projection) {
	p.record, p.index, p.told = q.record, q.index, q.told
}

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

// handOut returns the frames of a record, and keeps no reference: a view may be idle for hours.
func (p *Projection) handOut() []Frame {
	frames := p.frames
	p.frames = nil
	return frames
}

// over reports whether the run has ended and its end was shown.
func (p *Projection) over() bool { return p.terminal && !p.joining }

// current returns the run, whether it has begun or not.
func (p *Projection) current() (stream.Run, bool) { return p.run, true }

func (p *Projection) lane(lane stream.Lane) *laneView {
	v := p.lanes[lane]
	if v == nil {
		v = &laneView{}
		p.lanes[lane] = v
	}
	return v
}

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
	if rec.Steers() { // no message is open that a snapshot could cut
		return p.emitSnapshots(ctx, rec.Seq, residue{})
	}
	return nil
}

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

// events shows the events of an attempt that the reader is to see.
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

// supersede closes a lane whose step has no further attempt.
func (p *Projection) supersede(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	delete(p.lanes, rec.Lane)
	if !rec.HasResult() {
		return p.retract(ctx, v)
	}
	return p.emit(slices.Concat(v.closingEvents(), v.callEnds())...)
}

// retract tells the reader to drop what it saw of a superseded attempt.
func (p *Projection) retract(ctx context.Context, v *laneView) error {
	p.anySuperseded = p.anySuperseded || v.wrote
	if p.joining {
		p.retracted.add(v.residue)
	}
	if v.shown == (stream.Position{}) {
		return nil
	}
	p.told = p.outstanding(stream.Unseen{Shown: v.shown, SupersededAt: p.record})
	if err := p.emit(v.closingEvents()...); err != nil {
		return err
	}
	back := v.residue
	back.amid = true
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
	asked, err := asksForAnswers(events)
	if err != nil {
		return err
	}
	back.state = back.state || asked // an answer is based on the whole state
	if p.anySuperseded || p.heal || asked {
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

// asksForAnswers reports whether a run ends with interrupts.
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

// emit shows events that are computed here.
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

// show gives an event its position, and makes a frame of it unless the reader has it.
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

func (p *Projection) cursor(at stream.Position) stream.Cursor {
	return stream.Cursor{Position: at, Profile: p.profile, Epoch: p.store.Log().Epoch(), Followed: p.followed, Heal: p.heal, Unseen: p.told}
}
