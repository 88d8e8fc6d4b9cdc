package snapshot

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure/stream"
)

// Content is the complete result of a KindFork record: the origin, and the messages and the state
// that the thread begins with.
type Content struct {
	stream.Fork
	Entries []Entry         `json:"entries,omitempty"`
	State   json.RawMessage `json:"state"`
	// Moved and Unmoved are the snapshot's: clients may know the conversation in its old order.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`
}

// Fork begins a thread of the same tenant with the conversation and the state that another thread
// had at the end of a run. Interrupts, decisions and remembered approvals are not copied. It writes
// the new thread's first record; forking again with the same origin changes nothing. The error is
// stream.ErrRunActive if the run has not ended in its last segment, and stream.ErrThreadExists if
// the thread has records of another origin.
func (s *Store) Fork(ctx context.Context, from stream.Run, to stream.Thread) error {
	begun, err := s.log.OpeningOf(ctx, from)
	if err != nil {
		return err
	}
	end, err := s.log.Last(ctx, s.log.LaneSubject(from, stream.LaneMain))
	switch {
	case err != nil:
		return err
	case begun == nil, end == nil, end.Kind != stream.KindTerminal:
		return stream.ErrRunActive
	}
	base, err := s.At(ctx, from.Thread, end.Seq)
	if err != nil {
		return err
	}
	note := Content{
		Fork: stream.Fork{
			Thread: to.ID,
			Origin: stream.Origin{Thread: from.Thread.ID, Run: from.Shown(), Agent: begun.Agent, ProtocolVersion: begun.ProtocolVersion},
			Handed: base.Handed,
		},
		Entries: base.Entries, State: base.State, Moved: base.Moved, Unmoved: base.Unmoved,
	}
	return s.log.WriteFork(ctx, to, &note.Fork, &note)
}

// fork begins the thread with the content of its KindFork record. The messages are new to all
// readers of this thread, so Since is that record.
func (f *fold) fork(ctx context.Context, rec *stream.Record) error {
	var note Content
	if err := rec.Result(ctx, &note); err != nil {
		return err
	}
	if f.r.Run != "" || f.r.Origin != nil {
		return nil // a fork is the first record of a thread
	}
	f.r.Origin, f.r.Active = &note.Origin, rec.Time
	f.r.Entries, f.r.Moved, f.r.Unmoved = slices.Clip(note.Entries), note.Moved, note.Unmoved
	for i := range f.r.Entries {
		f.r.Entries[i].Since = rec.Seq
	}
	f.r.Journal.Committed, f.r.Handed = note.State, note.Handed
	return nil
}
