package view

import (
	"context"
	"maps"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// A snapshot corrects the messages and the state that a client has. This file makes snapshots of
// the conversation, of its beginning, and of the state, for one reader: with the hidden attempts
// left out, and in a form that clients of both generations apply completely.
//
// Clients merge a MESSAGES_SNAPSHOT by message ID. They keep reasoning and activities that the
// snapshot lacks, unless it has a message of that kind, and they leave known messages in their
// places.

// emptyActivity returns an activity with an empty object as its content.
func emptyActivity(id, activityType string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleActivity, ActivityType: activityType, Content: agui.ObjectContent(snapshot.EmptyState)}
}

// emptyReasoning returns a reasoning message without text.
func emptyReasoning(id string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleReasoning, Content: agui.TextContent("")}
}

// emitForSender gives the client that sent the run's input the conversation and the state that the
// run really begins with, if they differ from the client's. A snapshot does not reorder the
// messages of a client. So if the client's list has another order, a snapshot of the messages
// before the first difference comes first: the client drops the others, and gets them back in the
// right order.
func (p *Projection) emitForSender(ctx context.Context, seq uint64, o *stream.Opening) error {
	if !o.Accepted.Differs {
		if o.StateKept {
			return p.emitState(ctx, seq)
		}
		return nil
	}
	if o.Accepted.Moved {
		if err := p.emitBeginning(ctx, seq, o.Accepted.Unmoved); err != nil {
			return err
		}
	}
	return p.emitSnapshots(ctx, seq, correction{needsState: true})
}

// emitBeginning emits a snapshot of the first n entries of the conversation at a record.
func (p *Projection) emitBeginning(ctx context.Context, seq uint64, n int) error {
	if !p.isDue() {
		p.index++
		return nil
	}
	snap, err := p.store.At(ctx, p.run.Thread, seq)
	if err != nil {
		return err
	}
	beginning, err := p.beginningSnapshot(snap, n)
	if err != nil {
		return err
	}
	return p.emit(beginning)
}

// unplacedID is the ID of the empty messages that make a client drop its reasoning and activities
// until the next snapshot.
const unplacedID = "perdure.unplaced"

// beginningSnapshot makes a snapshot of the first n entries, for clients that then drop all other
// messages and get them back with the next snapshot. Clients keep reasoning and activities that a
// snapshot lacks unless it has some of that kind. So the snapshot has an empty message of each kind
// that only the other entries have. The next snapshot, which has those entries, removes the empty
// message.
func (p *Projection) beginningSnapshot(snap *snapshot.Snapshot, n int) (*agui.MessagesSnapshot, error) {
	n = min(n, len(snap.Entries))
	messages, rest := snapshot.AppendShown(nil, snap.Entries[:n]), snapshot.AppendShown(nil, snap.Entries[n:])
	if snapshot.HasRole(rest, agui.RoleReasoning) && !snapshot.HasRole(messages, agui.RoleReasoning) {
		messages = append(messages, emptyReasoning(unplacedID+".reasoning"))
	}
	if p.generation != stream.Generation0 {
		complete, err := completeFor(messages, rest)
		return &agui.MessagesSnapshot{BaseEvent: agui.BaseEvent{Metadata: complete}, Messages: messages}, err
	}
	if snapshot.HasRole(rest, agui.RoleActivity) && !snapshot.HasRole(messages, agui.RoleActivity) {
		messages = append(messages, emptyActivity(unplacedID+".activity", unplacedID))
	}
	return &agui.MessagesSnapshot{Messages: messages}, nil
}

// emitSnapshots emits a MESSAGES_SNAPSHOT as of a record, and a STATE_SNAPSHOT if the correction
// needs one.
func (p *Projection) emitSnapshots(ctx context.Context, seq uint64, c correction) error {
	if !p.isDue() {
		p.index++
	} else if err := p.emitMessages(ctx, seq, c); err != nil {
		return err
	}
	if c.needsState {
		return p.emitState(ctx, seq)
	}
	return nil
}

// emitMessages computes and emits the MESSAGES_SNAPSHOT of emitSnapshots.
func (p *Projection) emitMessages(ctx context.Context, seq uint64, c correction) error {
	snap, err := p.store.At(ctx, p.run.Thread, seq)
	if err != nil {
		return err
	}
	if c.withOpenMessages {
		openMessages, err := p.openMessages(ctx)
		if err != nil {
			return err
		}
		c.appended = append(c.appended, openMessages...)
	}
	message, err := p.conversationSnapshot(snap, c)
	if err != nil {
		return err
	}
	return p.emit(message)
}

// openMessages returns the messages that agents are still writing on other lanes, as far as the
// reader was shown them: later events append to them. It reads the records of those lanes again.
func (p *Projection) openMessages(ctx context.Context) ([]agui.Message, error) {
	var all []agui.Message
	for _, lane := range slices.Sorted(maps.Keys(p.lanes)) {
		v := p.lanes[lane]
		if v.shown == (stream.Position{}) || !lane.IsAgentLane() {
			continue
		}
		reducer := agui.NewReducer(nil, nil)
		for rec, err := range p.store.Log().Records(ctx, p.store.Log().LaneSubject(p.run, lane), v.from, p.record) {
			if err != nil {
				return nil, err
			}
			if rec.Writer != v.writer || rec.OpensStep() {
				continue
			}
			if err := stream.ApplyEvents(ctx, reducer, rec, p.isHidden); err != nil {
				return nil, err
			}
		}
		for _, m := range reducer.Messages() {
			if m.Role != agui.RoleActivity { // Snapshot.MessagesFor has pending activities
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// conversationSnapshot makes a snapshot of the conversation that the reader is to have. Clients
// keep reasoning and activities that a snapshot lacks unless it has some of that kind, so retracted
// ones are sent empty where needed. For clients of AG-UI 1.x the metadata names the activity types
// that the snapshot is complete for.
func (p *Projection) conversationSnapshot(snap *snapshot.Snapshot, c correction) (*agui.MessagesSnapshot, error) {
	messages := append(snap.MessagesFor(p.superseded), c.appended...)
	if !snapshot.HasRole(messages, agui.RoleReasoning) {
		for _, id := range c.reasoningIDs {
			messages = append(messages, emptyReasoning(id))
		}
	}
	if p.generation != stream.Generation0 {
		complete, err := completeFor(messages, c.activities)
		return &agui.MessagesSnapshot{BaseEvent: agui.BaseEvent{Metadata: complete}, Messages: messages}, err
	}
	if !snapshot.HasRole(messages, agui.RoleActivity) {
		messages = append(messages, c.activities...)
	}
	return &agui.MessagesSnapshot{Messages: messages}, nil
}

// lacksRole reports whether one of others has a role that no message of messages has.
func lacksRole(messages, others []agui.Message) bool {
	return slices.ContainsFunc(others, func(m agui.Message) bool { return !snapshot.HasRole(messages, m.Role) })
}

// completeFor returns the metadata that names the activity types which a snapshot has or retracts;
// nil = there are none. The snapshot does not speak for other types: a client may have made such
// activities itself.
func completeFor(messages, retracted []agui.Message) (agui.Metadata, error) {
	var types []string
	for _, m := range slices.Concat(messages, retracted) {
		if m.Role == agui.RoleActivity && !slices.Contains(types, m.ActivityType) {
			types = append(types, m.ActivityType)
		}
	}
	if types == nil {
		return nil, nil
	}
	return agui.SnapshotActivities(types)
}

// emitState emits a STATE_SNAPSHOT as of a record, with the changes of open attempts that the
// reader is shown.
func (p *Projection) emitState(ctx context.Context, seq uint64) error {
	if !p.isDue() {
		p.index++
		return nil
	}
	snap, err := p.store.At(ctx, p.run.Thread, seq)
	if err != nil {
		return err
	}
	return p.emit(&agui.StateSnapshot{Snapshot: snap.StateFor(p.superseded)})
}

// isDue reports whether the next event would become a frame. If it is only counted, callers advance
// the index and compute no snapshot.
func (p *Projection) isDue() bool {
	if p.joining {
		return false
	}
	return p.resumeAfter.Before(stream.Position{Seq: p.record, Index: p.index + 1})
}
