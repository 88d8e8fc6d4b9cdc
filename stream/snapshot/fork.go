package snapshot

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// Content is the complete result of a KindFork record: the origin, and the messages and the state
// that the thread begins with.
type Content struct {
	stream.Fork
	Entries []Entry         `json:"entries,omitempty"`
	State   json.RawMessage `json:"state"`
	// ByAgents is the part of the state that agents have written; nil = all of it.
	ByAgents json.RawMessage `json:"byAgents,omitempty"`
	// Contributors are those of the origin, whose content the fork has.
	Contributors []Contributor `json:"contributors,omitempty"`
	// TenantAgents are those of the origin.
	TenantAgents []stream.AgentRevision `json:"tenantAgents,omitempty"`
	// Moved and Unmoved are the snapshot's: clients may know the conversation in its old order.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`
}

// Fork begins a thread of the same tenant with the conversation and the state that another thread
// had at a point of a run; nil = at the run's end. Interrupts, decisions and remembered approvals are
// not copied. It writes the new thread's first record, and by becomes the owner of the thread; nil =
// an anonymous caller. Forking again by the same subject and with the same origin changes nothing.
// The error is stream.ErrRunActive if the run has not begun, or at is nil and it has not ended. It is
// stream.ErrThreadExists if the thread has records of another origin.
func (s *Store) Fork(ctx context.Context, from stream.Run, at *ForkPoint, to stream.Thread, by *auth.Principal) error {
	opening, err := s.log.OpeningOf(ctx, from)
	if err == nil && opening == nil {
		err = stream.ErrRunActive
	}
	if err != nil {
		return err
	}
	origin := stream.Origin{Thread: from.Thread.ID, Run: from.Shown(), Agent: opening.Agent, ProtocolVersion: opening.ProtocolVersion}
	if at != nil && at.Kind != ForkEnd {
		origin.At = s.log.CursorOf(at.Position).String()
		if at.Kind == ForkStep {
			origin.After = at.Name
		}
	}
	base, err := s.ForkBase(ctx, from, at)
	if err != nil {
		return err
	}
	content := Content{
		Fork:    stream.Fork{Thread: to.ID, Origin: origin, Title: stream.Title(base.Messages()), Handed: base.Handed, Requester: by},
		Entries: base.Entries, State: base.State, ByAgents: base.ByAgents, Moved: base.Moved, Unmoved: base.Unmoved, Contributors: base.Contributors, TenantAgents: base.TenantAgents,
	}
	return s.log.WriteFork(ctx, to, &content.Fork, &content)
}

// ForkBase returns the conversation and the state that a fork at a point of a run has; nil = at the run's end. The
// error is stream.ErrRunActive if at is nil and the run has not ended.
func (s *Store) ForkBase(ctx context.Context, from stream.Run, at *ForkPoint) (*Snapshot, error) {
	if at == nil || at.Kind == ForkEnd {
		return s.atEnd(ctx, from)
	}
	return s.atForkPoint(ctx, from, at)
}

// atEnd returns the snapshot at the end of a run. The error is stream.ErrRunActive if it has not ended
// in its last segment.
func (s *Store) atEnd(ctx context.Context, run stream.Run) (*Snapshot, error) {
	end, err := s.log.Last(ctx, s.log.LaneSubject(run, stream.LaneMain))
	switch {
	case err != nil:
		return nil, err
	case end == nil, end.Kind != stream.KindTerminal:
		return nil, stream.ErrRunActive
	}
	return s.At(ctx, run.Thread, end.Seq)
}

// beginFork begins the thread with the content of its KindFork record. The messages are new to all
// readers of this thread, so Since is that record.
func (f *folder) beginFork(ctx context.Context, rec *stream.Record) error {
	var content Content
	if err := rec.Result(ctx, &content); err != nil {
		return err
	}
	if f.snap.Run != "" || f.snap.Origin != nil {
		return nil // a fork is the first record of a thread
	}
	f.snap.Origin, f.snap.Active = &content.Origin, rec.Time
	f.snap.Entries, f.snap.Moved, f.snap.Unmoved = slices.Clip(content.Entries), content.Moved, content.Unmoved
	f.snap.Contributors, f.snap.TenantAgents = slices.Clip(content.Contributors), slices.Clip(content.TenantAgents)
	for i := range f.snap.Entries {
		f.snap.Entries[i].Since = rec.Seq
	}
	f.snap.Journal.Committed, f.snap.Journal.ByAgents, f.snap.Handed = content.State, content.ByAgents, content.Handed
	return nil
}
