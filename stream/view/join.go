package view

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// A reader without a cursor, or with an old list of messages, joins a run: it is shown a prelude
// instead of all events so far. The prelude is made of the log as it is when the reader attaches:
//
//	RUN_STARTED
//	(MESSAGES_SNAPSHOT  the messages that never moved, if an input cut the conversation)
//	MESSAGES_SNAPSHOT   the messages of finished steps: none of them grows again
//	STATE_SNAPSHOT
//	…                   open steps and subagents, and all events of unfinished attempts
//	CUSTOM …            the interrupts and tool calls that the run is held for
//
// The order was measured with clients of both generations: a message that is in a snapshot and
// grows afterwards, or that a snapshot leaves open, ends wrong in some of them. So a message of an
// open attempt is not in the snapshot, and follows it in as few events as possible.
//
// A run that has ended is shown as RUN_STARTED, the two snapshots and its last event: only its
// first and its last record are read.
//
// If several subagents write at once and a later message finishes first, a reader that joins in
// between gets the messages in the order in which they finished.
//
// Only the last event of a prelude has a cursor. It counts as the position at which the reader has
// seen all events of the unfinished attempts, so a later retraction covers them.

// inSnapshots reports whether the effect of an event of an open attempt is in a prelude's
// snapshots. Activities of a lane on which an agent writes are not: only the order of the events
// gives their place among its messages.
func inSnapshots(lane stream.Lane, t agui.EventType) bool {
	switch t {
	case agui.EventStateSnapshot, agui.EventStateDelta:
		return true
	case agui.EventActivitySnapshot, agui.EventActivityDelta:
		return !lane.IsAgentLane()
	}
	return false
}

// prelude returns the prelude of a joining reader, which stops joining with it. nil = the reader
// does not join, or the run has not begun. It computes the snapshot at the current record.
func (p *Projection) prelude(ctx context.Context) ([]Frame, error) {
	if !p.joining || p.started == nil {
		return nil, nil
	}
	items, err := p.openItems()
	if err != nil {
		return nil, err
	}
	snapshots, err := p.snapshots(ctx, items)
	if err != nil {
		return nil, err
	}
	last, err := p.terminalEvents()
	if err != nil {
		return nil, err
	}
	held, err := p.heldEvents(ctx)
	if err != nil {
		return nil, err
	}
	position := stream.Position{Seq: p.record, Index: max(p.index, 0)}
	if p.terminal { // the records between the first and the last were not read, so the index is unknown
		position.Index = stream.MaxIndex
	}
	p.joining, p.resumeAfter, p.cursorShownParts, p.retracted = false, position, nil, correction{}
	for _, v := range p.lanes {
		v.events = nil
	}
	frames, err := p.uncursoredFrames(slices.Concat([][]byte{p.started}, snapshots, items.encoded, held, last)...)
	if err != nil {
		return nil, err
	}
	frames[len(frames)-1].Cursor = p.cursor(position)
	return frames, nil
}

// openItems are the events of a prelude that repeat open steps, subagents and messages.
type openItems struct {
	encoded [][]byte
	// placeholders are the messages among them that a client with an old list may have, and that a
	// snapshot would not remove from it: reasoning, and the activities before the step's first
	// text. Each is empty.
	placeholders []agui.Message
}

// addPlaceholder adds a message to placeholders, once.
func (o *openItems) addPlaceholder(m agui.Message) {
	if !slices.ContainsFunc(o.placeholders, func(k agui.Message) bool { return k.ID == m.ID }) {
		o.placeholders = append(o.placeholders, m)
	}
}

// openItems returns the events that repeat what is open, compacted: one event for the deltas of a
// message. A run that has ended has none.
func (p *Projection) openItems() (openItems, error) {
	var items openItems
	if p.terminal {
		return items, nil
	}
	events, err := p.openEvents()
	if err != nil {
		return items, err
	}
	hasText := false
	for _, e := range agui.Compact(events) {
		switch e := e.(type) {
		case *agui.TextMessageStart, *agui.ToolCallStart:
			hasText = true
		case *agui.ReasoningMessageStart:
			items.addPlaceholder(emptyReasoning(e.MessageID))
		case *agui.ActivitySnapshot:
			if !hasText {
				items.addPlaceholder(emptyActivity(e.MessageID, e.ActivityType))
			}
		}
		raw, err := agui.Encode(e)
		if err != nil {
			return items, err
		}
		items.encoded = append(items.encoded, raw)
	}
	return items, nil
}

// openEvents returns, in the order of the log, the open scopes and the events of open attempts that
// are not in the snapshots.
func (p *Projection) openEvents() ([]agui.Event, error) {
	type placed struct {
		at     stream.Position
		events []agui.Event
	}
	var all []placed
	for _, s := range p.scopes.needed() {
		events := []agui.Event{s.started}
		if s.ended != nil {
			events = append(events, s.ended)
		}
		all = append(all, placed{s.position, events})
	}
	for lane, v := range p.lanes {
		for _, s := range v.events {
			if inSnapshots(lane, agui.TypeOf(s.event)) {
				continue
			}
			e, err := agui.Decode(s.event)
			if err != nil {
				return nil, err
			}
			all = append(all, placed{s.position, []agui.Event{e}})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at.Seq, b.at.Seq), cmp.Compare(a.at.Index, b.at.Index))
	})
	var events []agui.Event
	for _, s := range all {
		events = append(events, s.events...)
	}
	return events, nil
}

// snapshots returns the conversation and the state, encoded, and before them the beginning of the
// conversation if messages have moved.
//
// A client with an old list may have the beginning of a reasoning message that is still open. A
// snapshot without any reasoning leaves it there, and the repeated events would double it. So the
// snapshot has the reasoning message, empty. The same holds for activities, and for messages of a
// superseded attempt, because the next attempt uses the same IDs. Clients that store and replay
// events then need one more snapshot at the run's end (heal).
func (p *Projection) snapshots(ctx context.Context, items openItems) ([][]byte, error) {
	snap, err := p.store.At(ctx, p.run.Thread, p.record)
	if err != nil {
		return nil, err
	}
	snap = snap.WithoutAgentActivities()
	c := p.retracted
	shownMessages := snap.MessagesFor(p.superseded)
	if lacksRole(shownMessages, items.placeholders) {
		c.appended = items.placeholders
	}
	if !snapshot.HasRole(shownMessages, agui.RoleReasoning) && (len(c.reasoningIDs) > 0 || snapshot.HasRole(c.appended, agui.RoleReasoning)) {
		p.needsSnapshot = true
	}
	c.merge(cutCorrection(snap))
	conversation, err := p.conversationSnapshot(snap, c)
	if err != nil {
		return nil, err
	}
	events := []agui.Event{conversation, &agui.StateSnapshot{Snapshot: snap.StateFor(p.superseded)}}
	unmoved := len(snapshot.AppendShown(nil, snap.Entries[:min(snap.Unmoved, len(snap.Entries))]))
	if snap.Moved && unmoved < len(conversation.Messages) { // a snapshot doesn't reorder what an old list has
		beginning, err := p.beginningSnapshot(snap, snap.Unmoved)
		if err != nil {
			return nil, err
		}
		events = append([]agui.Event{beginning}, events...)
	}
	return encodeAll(events)
}

// terminalEvents returns the events of the terminal record, in their form as history if the run is
// history; nil = the run has not ended.
func (p *Projection) terminalEvents() ([][]byte, error) {
	if !p.terminal || !p.history {
		return p.lastEvents, nil
	}
	events := slices.Clone(p.lastEvents)
	for i, raw := range events {
		e, err := p.asHistory(raw)
		if err != nil {
			return nil, err
		}
		events[i] = e
	}
	return events, nil
}

// asHistory returns an event of the end of a run in its form as history. Clients report each
// RUN_ERROR as an error that happens now, so an old one becomes RUN_FINISHED, with its code and
// message in the metadata. Other events stay as they are.
func (p *Projection) asHistory(raw []byte) ([]byte, error) {
	kind, encoded, err := Downgrade(p.generation, agui.TypeOf(raw), raw)
	if err != nil || kind != agui.EventRunError {
		return raw, err
	}
	e, err := agui.Decode(encoded)
	if err != nil {
		return nil, err
	}
	failed, ok := e.(*agui.RunError)
	if !ok {
		return raw, nil
	}
	errorInfo, err := json.Marshal(map[string]string{"code": failed.Code, "message": failed.Message})
	if err != nil {
		return nil, err
	}
	metadata := agui.Metadata{"perdure.error": errorInfo}
	for name, value := range failed.Metadata { // for instance the usage and the cost of the run
		if name != "perdure.error" {
			metadata[name] = value
		}
	}
	return agui.Encode(&agui.RunFinished{
		BaseEvent: agui.BaseEvent{Timestamp: failed.Timestamp, Metadata: metadata},
		ThreadID:  p.run.Thread.ID, RunID: p.run.Shown(), Usage: failed.Usage,
	})
}

// uncursoredFrames makes frames without cursors, in the reader's generation.
func (p *Projection) uncursoredFrames(events ...[]byte) ([]Frame, error) {
	frames := make([]Frame, 0, len(events))
	for _, raw := range events {
		kind, event, err := Downgrade(p.generation, agui.TypeOf(raw), raw)
		if err != nil {
			return nil, err
		}
		frames = append(frames, Frame{Type: kind, Event: event})
	}
	return frames, nil
}

// heldEvents returns the events for the interrupts and client tool calls that the run is held for.
// They are read from the snapshot: earlier ones may have been decided since.
func (p *Projection) heldEvents(ctx context.Context) ([][]byte, error) {
	if p.terminal {
		return nil, nil
	}
	snap, err := p.store.At(ctx, p.run.Thread, p.record)
	if err != nil || snap.Sealed || snap.Run != stream.Token(p.run.ID) {
		return nil, err
	}
	events, err := stream.HeldEvents(snap.Interrupts, snap.ClientCalls)
	if err != nil {
		return nil, err
	}
	return encodeAll(events)
}

// encodeAll encodes events, in their order.
func encodeAll(events []agui.Event) ([][]byte, error) {
	var encoded [][]byte
	for _, e := range events {
		raw, err := agui.Encode(e)
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, raw)
	}
	return encoded, nil
}
