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
// had at the end of a run. Interrupts, decisions and remembered approvals are not copied. It writes
// the new thread's first record, and by becomes the owner of the thread; nil = an anonymous caller.
// Forking again by the same subject and with the same origin changes nothing. The error is
// stream.ErrRunActive if the run has not ended in its last segment, and stream.ErrThreadExists if
// the thread has records of another origin.
func (s *Store) Fork(ctx context.Context, from stream.Run, to stream.Thread, by *auth.Principal) error {
	opening, err := s.log.OpeningOf(ctx, from)
	if err != nil {
		return err
	}
	end, err := s.log.Last(ctx, s.log.LaneSubject(from, stream.LaneMain))
	switch {
	case err != nil:
		return err
	case opening == nil, end == nil, end.Kind != stream.KindTerminal:
		return stream.ErrRunActive
	}
	base, err := s.At(ctx, from.Thread, end.Seq)
	if err != nil {
		return err
	}
	content := Content{
		Fork: stream.Fork{
			Thread: to.ID,
			Origin: stream.Origin{Thread: from.Thread.ID, Run: from.Shown(), Agent: opening.Agent, ProtocolVersion: opening.ProtocolVersion},
			Title:  stream.Title(base.Messages()),
			Handed: base.Handed, Requester: by,
		},
		Entries: base.Entries, State: base.State, ByAgents: base.ByAgents, Moved: base.Moved, Unmoved: base.Unmoved, Contributors: base.Contributors, TenantAgents: base.TenantAgents,
	}
	return s.log.WriteFork(ctx, to, &content.Fork, &content)
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
