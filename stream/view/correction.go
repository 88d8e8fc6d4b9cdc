package view

import (
	"context"
	"maps"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// What clients have is corrected by snapshots. This file makes them: of the conversation, of a part of
// it that sets an order, and of the state.

// taken is what stays with clients, if an attempt dies, unless a snapshot takes care of it.
type taken struct {
	reasoned   []string       // ids of reasoning messages
	activities []agui.Message // emptied
	kept       []agui.Message // emptied, of both kinds, and to be in the snapshot in this order
	state      bool           // the state changed
	amid       bool           // others go on speaking, whose words so far are to stay
}

func (t *taken) add(more taken) {
	for _, id := range more.reasoned {
		t.reasoning(id)
	}
	for _, m := range more.activities {
		t.activity(m.ID, m.ActivityType)
	}
	t.state = t.state || more.state
}

// note takes in an event of a dead attempt that nobody is shown.
func (t *taken) note(raw []byte) error {
	switch agui.TypeOf(raw) {
	case agui.EventReasoningMessageStart, agui.EventActivitySnapshot:
	default:
		return nil
	}
	e, err := agui.Decode(raw)
	if err != nil {
		return err
	}
	switch e := e.(type) {
	case *agui.ReasoningMessageStart:
		t.reasoning(e.MessageID)
	case *agui.ActivitySnapshot:
		t.activity(e.MessageID, e.ActivityType)
	}
	return nil
}

func (t *taken) reasoning(id string) {
	if !slices.Contains(t.reasoned, id) {
		t.reasoned = append(t.reasoned, id)
	}
}

func (t *taken) activity(id, activityType string) {
	if slices.ContainsFunc(t.activities, func(m agui.Message) bool { return m.ID == id }) {
		return
	}
	t.activities = append(t.activities, emptyActivity(id, activityType))
}

func emptyActivity(id, activityType string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleActivity, ActivityType: activityType, Content: agui.ObjectContent(snapshot.EmptyState)}
}

func emptyReasoning(id string) agui.Message {
	return agui.Message{ID: id, Role: agui.RoleReasoning, Content: agui.TextContent("")}
}

// realign gives a client the conversation and the state that its run really has. A snapshot doesn't
// reorder what a client knows, so where it said something behind what it had missed, a snapshot up to
// there comes first: what the client said is dropped, and stands behind the rest when it is back.
func (p *Projection) realign(ctx context.Context, seq uint64, o *stream.Opening) error {
	if !o.Accepted.Differs {
		if o.StateKept {
			return p.restateState(ctx, seq)
		}
		return nil
	}
	if o.Said > 0 {
		if err := p.restateFirst(ctx, seq, o.SaidAfter); err != nil {
			return err
		}
	}
	return p.restate(ctx, seq, taken{state: true})
}

// restateFirst emits a snapshot of the first messages of the conversation alone.
func (p *Projection) restateFirst(ctx context.Context, seq uint64, n int) error {
	if !p.due() {
		p.index++
		return nil
	}
	r, err := p.store.At(ctx, p.run.Thread, seq)
	if err != nil {
		return err
	}
	return p.emit(&agui.MessagesSnapshot{Messages: snapshot.AppendShown(nil, r.Entries[:min(n, len(r.Entries))])})
}

// restate emits a MESSAGES_SNAPSHOT of the conversation as of a record, and the state if that is to be
// taken back.
func (p *Projection) restate(ctx context.Context, seq uint64, back taken) error {
	if !p.due() {
		p.index++
	} else if err := p.restateMessages(ctx, seq, back); err != nil {
		return err
	}
	if back.state {
		return p.restateState(ctx, seq)
	}
	return nil
}

func (p *Projection) restateMessages(ctx context.Context, seq uint64, back taken) error {
	r, err := p.store.At(ctx, p.run.Thread, seq)
	if err != nil {
		return err
	}
	if back.amid {
		said, err := p.openSaid(ctx)
		if err != nil {
			return err
		}
		back.kept = append(back.kept, said...)
	}
	snapshot, err := p.conversation(r, back)
	if err != nil {
		return err
	}
	return p.emit(snapshot)
}

// openSaid is what the reader was shown of the messages that subagents are still saying: what comes next is
// added to it, so it is there to the last piece.
func (p *Projection) openSaid(ctx context.Context) ([]agui.Message, error) {
	var all []agui.Message
	for _, lane := range slices.Sorted(maps.Keys(p.lanes)) {
		v := p.lanes[lane]
		if v.shown == (stream.Position{}) || !lane.Speaks() {
			continue
		}
		said := agui.NewReducer(nil, nil)
		for rec, err := range p.store.Log().Records(ctx, p.store.Log().LaneSubject(p.run, lane), v.from, p.record) {
			if err != nil {
				return nil, err
			}
			if rec.Writer != v.writer {
				continue
			}
			if err := stream.ApplyEvents(ctx, said, rec, p.hides); err != nil {
				return nil, err
			}
		}
		for _, m := range said.Messages() {
			if m.Role != agui.RoleActivity { // those are in the conversation by now
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// conversation makes a snapshot of what the reader is to have. Clients keep reasoning and activities
// that a snapshot lacks, unless it has some of that kind; so what is withdrawn is emptied where no other
// would drive it out. Newer clients let a snapshot name the types of activities that it is complete for.
func (p *Projection) conversation(r *snapshot.Snapshot, back taken) (*agui.MessagesSnapshot, error) {
	messages := append(r.MessagesFor(p.dead), back.kept...)
	if !snapshot.HasRole(messages, agui.RoleReasoning) {
		for _, id := range back.reasoned {
			messages = append(messages, emptyReasoning(id))
		}
	}
	if p.profile != stream.Profile0 {
		complete, err := completeFor(messages, back.activities)
		return &agui.MessagesSnapshot{BaseEvent: agui.BaseEvent{Metadata: complete}, Messages: messages}, err
	}
	if !snapshot.HasRole(messages, agui.RoleActivity) {
		messages = append(messages, back.activities...)
	}
	return &agui.MessagesSnapshot{Messages: messages}, nil
}

// lacks tells whether some messages are of a kind, reasoning or activity, that others have none of.
func lacks(messages, some []agui.Message) bool {
	return slices.ContainsFunc(some, func(m agui.Message) bool { return !snapshot.HasRole(messages, m.Role) })
}

// completeFor names the types of activities that a snapshot has or takes back. Others, which a client
// may have made itself, are none of its business.
func completeFor(messages, withdrawn []agui.Message) (agui.Metadata, error) {
	var types []string
	for _, m := range slices.Concat(messages, withdrawn) {
		if m.Role == agui.RoleActivity && !slices.Contains(types, m.ActivityType) {
			types = append(types, m.ActivityType)
		}
	}
	if types == nil {
		return nil, nil
	}
	return agui.SnapshotActivities(types)
}

func (p *Projection) restateState(ctx context.Context, seq uint64) error {
	if !p.due() {
		p.index++
		return nil
	}
	r, err := p.store.At(ctx, p.run.Thread, seq)
	if err != nil {
		return err
	}
	return p.emit(&agui.StateSnapshot{Snapshot: r.StateFor(p.dead)})
}

// due tells whether the next event would be shown, or only counted: reducing a thread for a reader that
// is past it is wasted.
func (p *Projection) due() bool {
	if p.joining {
		return false
	}
	return p.resume.Before(stream.Position{Seq: p.record, Index: p.index + 1})
}
