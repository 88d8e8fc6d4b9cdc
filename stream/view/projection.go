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

// Projection turns the records of one run into what one reader is shown. It is a pure function of
// the log up to now, the reader's profile and where the reader starts; withdrawals, closings and
// snapshots come into being here and are never logged.
//
// An attempt that died is shown to nobody who comes after its end was written. Who had been shown a
// part of it, live or before a reconnect, gets a withdrawal computed for just that part. So a
// projection that starts at a cursor replays the run from its beginning without showing anything,
// to know what the reader has open, and takes from the cursor how far that reader had got.
//
// How to withdraw so that both generations of clients end right was measured with them: end an open
// text, then send a snapshot without what is withdrawn, and only then end open tool calls, since a
// client would act on a truncated call that ends while its message still stands.
type Projection struct {
	store   *snapshot.Store
	run     stream.Run
	profile stream.Profile
	resume  stream.Position   // nothing up to here is shown again
	unseen  []stream.Unseen   // what the reader had not been shown of attempts that died since
	dead    map[string]uint64 // writers that died, with the record that superseded them

	followed bool  // the reader did not send the run's input
	history  bool  // the run is shown as something past, if it has ended when the reader joins
	joining  bool  // nothing is shown before the prelude
	heal     bool  // a full snapshot stands before the run's end, whatever happened
	gone     taken // what dead attempts said, while the reader joins: it may have some of that

	lanes    map[stream.Lane]*laneView
	scopes   scopes
	started  []byte   // RUN_STARTED
	ended    [][]byte // the terminal record's events
	anyDead  bool     // an attempt of this run that had written events died
	terminal bool
	record   uint64
	index    int
	told     []stream.Unseen // by the cursors of this record's frames
	frames   []Frame
}

// NewProjection returns the projection of a run for a reader that comes when the log has some records of the run, with a
// cursor or without one (nil). Those records decide which attempts are shown.
func NewProjection(s *snapshot.Store, run stream.Run, profile stream.Profile, from *stream.Cursor, past []*stream.Record) *Projection {
	d := newDeaths()
	for _, rec := range past {
		d.add(rec)
	}
	return newProjection(s, run, readerOf(profile, from), d.dead)
}

func newProjection(s *snapshot.Store, run stream.Run, r reader, dead map[string]uint64) *Projection {
	p := &Projection{
		store: s, run: run, profile: r.profile, dead: dead, lanes: map[stream.Lane]*laneView{},
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
		return nil, nil // the run is sealed; what a zombie wrote behind the end is not part of it
	}
	p.at(rec.Seq)
	return p.project(ctx, rec)
}

// at begins the frames of a record.
func (p *Projection) at(seq uint64) {
	p.record, p.index = seq, -1
	p.told = p.outstanding()
}

// behind goes on with the frames of a record of which another projection has shown some.
func (p *Projection) behind(q *Projection) { p.record, p.index, p.told = q.record, q.index, q.told }

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

// handOut returns the frames of a record and lets go of them: a reader that hears nothing for hours
// must not hold the last record in memory.
func (p *Projection) handOut() []Frame {
	frames := p.frames
	p.frames = nil
	return frames
}

// over tells whether the run is, and has been shown to be.
func (p *Projection) over() bool { return p.terminal && !p.joining }

// current is the run, whether it has begun or not.
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
	p.heal = p.heal || len(questions) > 0 // calls may be made with other arguments than readers were shown
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
			err = p.realign(ctx, rec.Seq, opening)
		}
		if err != nil {
			return err
		}
	}
	if rec.Steers() { // nothing is open here that a snapshot could cut
		return p.restate(ctx, rec.Seq, taken{})
	}
	return nil
}

func (p *Projection) attempt(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	delete(p.lanes, rec.Lane)
	if v.writer != "" && v.writer != rec.Writer {
		if err := p.withdraw(ctx, v); err != nil {
			return err
		}
	}
	p.lanes[rec.Lane] = &laneView{writer: rec.Writer, from: rec.Seq, died: p.dead[rec.Writer]}
	return nil
}

// events shows a frame of an attempt, as far as this reader gets to see the attempt.
func (p *Projection) events(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	if v.writer != rec.Writer {
		return nil // the fence makes this impossible; better nothing than a zombie's words
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
				if err := p.gone.note(e); err != nil {
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
			v.said = append(v.said, said{at, e})
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

// supersede closes a lane whose step will have no further attempt.
func (p *Projection) supersede(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	delete(p.lanes, rec.Lane)
	if !rec.HasResult() {
		return p.withdraw(ctx, v)
	}
	return p.emit(slices.Concat(v.ends(), v.callEnds())...)
}

// withdraw takes back what a dead attempt had shown to this reader.
func (p *Projection) withdraw(ctx context.Context, v *laneView) error {
	p.anyDead = p.anyDead || v.wrote
	if p.joining {
		p.gone.add(v.taken)
	}
	if v.shown == (stream.Position{}) {
		return nil
	}
	p.told = p.outstanding(stream.Unseen{Behind: v.shown, Died: p.record})
	if err := p.emit(v.ends()...); err != nil {
		return err
	}
	back := v.taken
	back.amid = true
	if err := p.restate(ctx, p.record, back); err != nil {
		return err
	}
	return p.emit(v.callEnds()...)
}

// end shows the terminal record, before which everything that is open is closed: whoever sealed the
// run need not have known of an attempt that got in between. A run in which an attempt died gets one
// more full snapshot right before its last event: it heals the stored copies of clients that keep and
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
	var back taken
	for _, lane := range slices.Sorted(maps.Keys(p.lanes)) {
		v := p.lanes[lane]
		p.anyDead = p.anyDead || v.writer != "" && v.wrote
		closings = append(closings, v.ends()...)
		callEnds = append(callEnds, v.callEnds()...)
		back.add(v.taken)
	}
	closings = append(closings, p.scopes.closings()...)
	if err := p.emit(closings...); err != nil {
		return err
	}
	asked, err := asksForAnswers(events)
	if err != nil {
		return err
	}
	back.state = back.state || asked // who answers, answers to all that there is
	if p.anyDead || p.heal || asked {
		if err := p.restate(ctx, p.record, back); err != nil {
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

// asksForAnswers tells whether a run ends with questions.
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

// emit shows events that are projected, not logged.
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

// show gives an event its place and, if the reader does not have it yet, hands it out.
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
