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
// log up to now, the reader's generation, and where the reader starts. Retractions, closing events
// and snapshots are computed here and never logged. A Projection is used by one goroutine.
//
// A superseded attempt is hidden from readers that attach after the record that superseded it. A
// reader that was shown a part of it, live or before it reconnected, gets a retraction of just that
// part. So a projection that starts at a cursor first replays the run from its beginning without
// frames: the replay tells what the reader has open, and the cursor tells how far it had read.
//
// A retraction has the order that clients of both generations handle correctly (measured): end open
// texts, tell the reason (CustomRetracted), send a snapshot without the retracted messages, and
// only then end open tool calls, because a client acts on a truncated call that ends while its
// message exists.
type Projection struct {
	store       *snapshot.Store
	run         stream.Run
	generation  stream.Generation
	resumeAfter stream.Position    // the reader's cursor: frames up to here are not sent again
	shownParts  []stream.ShownPart // of the cursor: how far the reader was shown attempts that are superseded after it
	superseded  map[string]uint64  // superseded writers, with the record that superseded each; shared, read-only

	spectator     bool       // the reader did not send the run's input
	history       bool       // a run that has ended is shown as history, if the reader joins
	joining       bool       // the prelude is still to come; until then records have no frames
	needsSnapshot bool       // a snapshot precedes the run's last event in any case
	retracted     correction // of superseded attempts while the reader joins: an old list of the client may have it

	progress
	output
}

// progress is what the projection has read of the run.
type progress struct {
	lanes         map[stream.Lane]*laneView // unfinished attempts, by lane
	scopes        scopes                    // open steps, and subagents
	started       []byte                    // RUN_STARTED
	lastEvents    [][]byte                  // the events of the terminal record
	hasSuperseded bool                      // an attempt that had written events was superseded
	firstMove     uint64                    // first record of the first attempt that has moved messages; 0 = none has
	terminal      bool                      // the terminal record was projected: later records do not count
}

// output is what one record becomes: the frames that the projection returns next.
type output struct {
	record uint64 // sequence of the record that is being projected
	// index is that of the last event of the record; -1 = none yet. It counts all events that any
	// reader could be shown of the record, also those that are hidden from this reader. So the same
	// event has the same position for every reader.
	index            int
	cursorShownParts []stream.ShownPart // Cursor.ShownParts of the record's frames
	frames           []Frame            // of the record, until takeFrames
}

// NewProjection returns the projection of a run for a reader with a cursor, or without one (nil).
// past are the records that the log has of the run when the reader attaches: attempts that they
// supersede are hidden. The caller then adds the records, those of past first.
func NewProjection(s *snapshot.Store, run stream.Run, generation stream.Generation, from *stream.Cursor, past []*stream.Record) *Projection {
	supersessions := newSupersessions()
	for _, rec := range past {
		supersessions.add(rec)
	}
	return newProjection(s, run, readerOf(generation, from), supersessions.supersededAt)
}

// newProjection returns the projection of a run for a reader; superseded are the attempts that are
// known to be superseded.
func newProjection(s *snapshot.Store, run stream.Run, r reader, superseded map[string]uint64) *Projection {
	p := &Projection{
		store: s, run: run, generation: r.generation, superseded: superseded, progress: progress{lanes: map[stream.Lane]*laneView{}},
		spectator: r.spectator, needsSnapshot: r.heal, joining: r.joining,
	}
	if r.from != nil {
		p.resumeAfter, p.shownParts = r.from.Position, r.from.ShownParts
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
	p.beginRecord(rec.Seq)
	return p.project(ctx, rec)
}

// beginRecord begins the frames of a record.
func (p *Projection) beginRecord(seq uint64) {
	p.record, p.index = seq, -1
	p.cursorShownParts = p.shownPartEntries()
}

// continueAfter continues the frames of a record after those that previous, the projection of the
// previous run, has made of it: their indexes must not collide.
func (p *Projection) continueAfter(previous *Projection) {
	p.record, p.index, p.cursorShownParts = previous.record, previous.index, previous.cursorShownParts
}

// project makes the frames of the current record. Records of other kinds (mark, cancel, audit) have
// none.
func (p *Projection) project(ctx context.Context, rec *stream.Record) ([]Frame, error) {
	var err error
	switch rec.Kind {
	case stream.KindOpen:
		err = p.onOpen(ctx, rec)
	case stream.KindBegin:
		if err = p.onOpen(ctx, rec); err == nil {
			err = p.onAttempt(ctx, rec)
		}
	case stream.KindAttempt:
		err = p.onAttempt(ctx, rec)
	case stream.KindEvents, stream.KindDone:
		err = p.onEvents(ctx, rec)
	case stream.KindSupersede:
		err = p.onSupersede(ctx, rec)
	case stream.KindTerminal:
		err = p.onTerminal(ctx, rec)
	}
	return p.takeFrames(), err
}

// takeFrames returns the frames of a record, and keeps no reference to them: a view may be idle for
// hours.
func (p *Projection) takeFrames() []Frame {
	frames := p.frames
	p.frames = nil
	return frames
}

// hasEnded reports whether the run has ended and its end was shown.
func (p *Projection) hasEnded() bool { return p.terminal && !p.joining }

// currentRun returns the run, whether it has begun or not.
func (p *Projection) currentRun() (stream.Run, bool) { return p.run, true }

// lane returns the open attempt of a lane, or a new one without a writer.
func (p *Projection) lane(lane stream.Lane) *laneView {
	v := p.lanes[lane]
	if v == nil {
		v = &laneView{}
		p.lanes[lane] = v
	}
	return v
}

// onOpen shows an open record: lifecycle events, and the interrupts of a held run. After
// RUN_STARTED it gives the reader the conversation and the state with which the run begins, where
// they may differ from the client's. After a steering it sends the conversation with the new
// messages.
func (p *Projection) onOpen(ctx context.Context, rec *stream.Record) error {
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
		if p.generation == "" {
			p.generation = stream.GenerationOf(opening.ProtocolVersion)
		}
		p.needsSnapshot = p.needsSnapshot || opening.Edits
	}
	interrupts, _, err := stream.ParseHeld(events)
	if err != nil {
		return err
	}
	p.needsSnapshot = p.needsSnapshot || len(interrupts) > 0 // an approver may edit arguments that readers have seen
	for i, e := range events {
		if err := p.scopes.track(e, stream.Position{Seq: rec.Seq, Index: i}); err != nil {
			return err
		}
		if err := p.emitEncoded(e); err != nil {
			return err
		}
		if opening == nil || agui.TypeOf(e) != agui.EventRunStarted {
			continue
		}
		p.started = e
		if p.spectator {
			err = p.emitForSpectator(ctx, rec.Seq, opening)
		} else {
			err = p.emitForSender(ctx, rec.Seq, opening)
		}
		if err != nil {
			return err
		}
	}
	if rec.Steers() { // the step begins: its lane has no open message that the snapshot could cut
		return p.emitSnapshots(ctx, rec.Seq, correction{})
	}
	return nil
}

// onAttempt notes that a new attempt holds the lane, and retracts the unfinished one before it.
func (p *Projection) onAttempt(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	delete(p.lanes, rec.Lane)
	if v.writer != "" && v.writer != rec.Writer {
		if err := p.retract(ctx, v, retractedForRetry); err != nil {
			return err
		}
	}
	p.lanes[rec.Lane] = &laneView{writer: rec.Writer, from: rec.Seq, supersededAt: p.superseded[rec.Writer]}
	return nil
}

// onEvents shows the events of an attempt, except for those that are hidden from the reader. A done
// record also closes the lane, and only then do its steps and subagents count as ended.
//
// A MESSAGES_SNAPSHOT of an attempt has the messages of its lane only, so no reader is sent it: the
// snapshot at the end of the run has what it corrects.
func (p *Projection) onEvents(ctx context.Context, rec *stream.Record) error {
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
		position := stream.Position{Seq: rec.Seq, Index: i}
		if agui.TypeOf(e) == agui.EventMessagesSnapshot { // of the attempt's own messages
			if err := p.noteMessagesSnapshot(v, e); err != nil {
				return err
			}
			p.index++
			continue
		}
		if changesScopes(e) {
			v.scopes = append(v.scopes, shownEvent{position, e})
		}
		if p.isHidden(rec.Writer, position) {
			v.hide(position)
			p.index++
			if p.joining {
				if err := p.retracted.addHidden(e); err != nil {
					return err
				}
			}
			continue
		}
		v.shown = position
		if err := v.track(e, position); err != nil {
			return err
		}
		if p.joining {
			v.events = append(v.events, shownEvent{position, e})
		}
		if err := p.emitEncoded(e); err != nil {
			return err
		}
	}
	if rec.Kind == stream.KindDone {
		delete(p.lanes, rec.Lane)
		return p.scopes.trackAll(v.scopes)
	}
	return nil
}

// noteMessagesSnapshot notes a MESSAGES_SNAPSHOT of an attempt. An empty one precedes another if messages move: a
// snapshot moves none of a client's.
func (p *Projection) noteMessagesSnapshot(v *laneView, raw []byte) error {
	e, err := agui.Decode(raw)
	if err != nil {
		return err
	}
	p.needsSnapshot = true
	if snapshot, ok := e.(*agui.MessagesSnapshot); ok && len(snapshot.Messages) == 0 && (p.firstMove == 0 || v.from < p.firstMove) {
		p.firstMove = v.from
	}
	return nil
}

// emitSnapshotBeforeMoves emits the conversation without the messages that attempts may have moved, which a
// client then gets
// back in their order.
func (p *Projection) emitSnapshotBeforeMoves(ctx context.Context) error {
	if p.firstMove == 0 {
		return nil
	}
	snap, err := p.store.At(ctx, p.run.Thread, p.firstMove)
	if err != nil {
		return err
	}
	return p.emitBeginning(ctx, p.record, len(snap.Entries))
}

// onSupersede closes a lane whose step has no further attempt. It retracts the unfinished attempt,
// or, if the record has a result, ends its open messages and keeps them. What their arguments have
// changed of the state in advance is restored.
func (p *Projection) onSupersede(ctx context.Context, rec *stream.Record) error {
	v := p.lane(rec.Lane)
	delete(p.lanes, rec.Lane)
	if !rec.HasResult() {
		return p.retract(ctx, v, retractedForGood)
	}
	if err := p.emit(slices.Concat(v.closingEvents(), v.callEnds())...); err != nil || !v.correction.needsState {
		return err
	}
	return p.emitState(ctx, rec.Seq)
}

// retract tells the reader to drop the events that it was shown of a superseded attempt, and why.
// It sends nothing if there are none.
func (p *Projection) retract(ctx context.Context, v *laneView, reason string) error {
	p.hasSuperseded = p.hasSuperseded || v.wrote
	if p.joining {
		p.retracted.merge(v.correction)
	}
	if v.shown == (stream.Position{}) {
		return nil
	}
	p.cursorShownParts = p.shownPartEntries(stream.ShownPart{Shown: v.shown, SupersededAt: p.record})
	if err := p.emit(append(v.closingEvents(), retractedEvent(reason))...); err != nil {
		return err
	}
	c := v.correction
	c.withOpenMessages = true
	if err := p.emitSnapshots(ctx, p.record, c); err != nil {
		return err
	}
	return p.emit(v.callEnds()...)
}

// onTerminal shows the terminal record. It first closes everything that is open: the writer of the
// terminal record need not know of an attempt that wrote just before it. If an attempt of the run
// was superseded, a full snapshot precedes the last event: it corrects clients that store and
// replay events. The results with which the end of the run closes calls precede that snapshot,
// because it contains them.
func (p *Projection) onTerminal(ctx context.Context, rec *stream.Record) error {
	events, err := rec.Events(ctx)
	if err != nil {
		return err
	}
	end, err := p.ending(ctx, rec)
	if err != nil {
		return err
	}
	return p.closeRun(ctx, events, end)
}

// ending is what the fold has added at the terminal record of a run that was cancelled or failed.
type ending struct {
	results  []agui.Event // of calls that had none
	restored bool         // the state has changed
}

// ending returns what the fold has added at a terminal record. A joining reader has it from the
// prelude.
func (p *Projection) ending(ctx context.Context, rec *stream.Record) (end ending, err error) {
	last, err := rec.LastEvent(ctx)
	if err != nil || p.joining || !snapshot.ClosesCalls(last) {
		return end, err
	}
	snap, err := p.store.At(ctx, p.run.Thread, rec.Seq)
	if err != nil {
		return end, err
	}
	for _, m := range snap.ClosingResults() {
		end.results = append(end.results, agui.ToolCallResultOf(m))
	}
	end.restored = snap.Sealed && snap.Restored
	return end, nil
}

// closeRun ends everything that is open, shows what the end of the run has added and its last
// events, and makes the run terminal.
func (p *Projection) closeRun(ctx context.Context, events [][]byte, end ending) error {
	var closings, callEnds []agui.Event
	c := correction{needsState: end.restored}
	for _, lane := range slices.Sorted(maps.Keys(p.lanes)) {
		v := p.lanes[lane]
		p.hasSuperseded = p.hasSuperseded || v.writer != "" && v.wrote
		closings = append(closings, v.closingEvents()...)
		callEnds = append(callEnds, v.callEnds()...)
		c.merge(v.correction)
	}
	closings = append(closings, p.scopes.closingEvents(runEnded)...)
	if err := p.emit(append(closings, end.results...)...); err != nil {
		return err
	}
	hasInterrupts, err := endsWithInterrupts(events)
	if err != nil {
		return err
	}
	c.needsState = c.needsState || hasInterrupts // clients decide on the whole state
	switch {
	case p.hasSuperseded || p.needsSnapshot || hasInterrupts:
		if err = p.emitSnapshotBeforeMoves(ctx); err == nil {
			err = p.emitSnapshots(ctx, p.record, c)
		}
	case end.restored:
		err = p.emitState(ctx, p.record)
	}
	if err != nil {
		return err
	}
	if err := p.emit(callEnds...); err != nil {
		return err
	}
	for _, e := range events {
		if err := p.emitEncoded(e); err != nil {
			return err
		}
	}
	p.terminal, p.lastEvents = true, events
	return nil
}

// endsWithInterrupts reports whether the last of a run's events says that the run ended with
// interrupts.
func endsWithInterrupts(events [][]byte) (bool, error) {
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
		if err := p.emitEncoded(raw); err != nil {
			return err
		}
	}
	return nil
}

// emitEncoded gives an event the next position, and makes a frame of it unless the reader has been
// sent the event before or joins.
func (p *Projection) emitEncoded(raw json.RawMessage) error {
	p.index++
	position := stream.Position{Seq: p.record, Index: p.index}
	if p.joining || !p.resumeAfter.Before(position) {
		return nil
	}
	kind, event, err := Downgrade(p.generation, agui.TypeOf(raw), raw)
	if err != nil {
		return err
	}
	p.frames = append(p.frames, Frame{Type: kind, Event: event, Cursor: p.cursor(position)})
	return nil
}

// cursor returns the cursor of the event at a position of the current record.
func (p *Projection) cursor(position stream.Position) stream.Cursor {
	return stream.Cursor{Position: position, Generation: p.generation, Epoch: p.store.Log().Epoch(), Spectator: p.spectator, Heal: p.needsSnapshot, ShownParts: p.cursorShownParts}
}
