package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// ErrConversationChanged tells that the input builds on a message that was cut after the API
// accepted the input and before its run started.
var ErrConversationChanged = errors.New("snapshot: the messages were cut while the run waited to start")

// OpenRun writes the first record of a run, with RUN_STARTED and the given events, and returns its
// sequence (see stream.Log.OpenRun). It judges the accepted input again, against the thread as it
// is now (Snapshot.Renew). o names the agent and the input, or the run that it continues; OpenRun
// fills in the other fields. A later attempt finds the record that the first one has written.
//
// The error is ErrConversationChanged if the input cannot be applied any more.
func (s *Store) OpenRun(ctx context.Context, p stream.Place, o stream.Opening, events ...agui.Event) (uint64, error) {
	first, err := s.firstRecord(ctx, p, o, ErrConversationChanged)
	if err != nil {
		return 0, err
	}
	return s.log.OpenRun(ctx, p, first.opening, first.description, append([]agui.Event{first.started}, events...))
}

// BeginRun is OpenRun and then stream.Log.Begin for the same attempt (see stream.Log.BeginRun).
func (s *Store) BeginRun(ctx context.Context, p stream.Place, o stream.Opening, events ...agui.Event) (*stream.Attempt, *stream.Record, error) {
	first, err := s.firstRecord(ctx, p, o, ErrConversationChanged)
	if err != nil {
		return nil, nil, err
	}
	return s.log.BeginRun(ctx, p, first.opening, first.description, append([]agui.Event{first.started}, events...))
}

// OpenFailedRun is OpenRun for a run that ends with an error and does nothing else. If the input
// cannot be applied any more, the run opens with the thread's conversation instead.
func (s *Store) OpenFailedRun(ctx context.Context, p stream.Place, o stream.Opening, events ...agui.Event) (uint64, error) {
	first, err := s.firstRecord(ctx, p, o, nil)
	if err != nil {
		return 0, err
	}
	return s.log.OpenRun(ctx, p, first.opening, first.description, append([]agui.Event{first.started}, events...))
}

// firstRecord is the content of the first record of a run, and what its input says of the thread.
type firstRecord struct {
	opening     stream.Opening
	description stream.Description
	started     *agui.RunStarted
}

// firstRecord completes the opening of a run. conflict is the error if the input cannot be applied
// any more; nil = the run opens with the thread's conversation.
func (s *Store) firstRecord(ctx context.Context, p stream.Place, o stream.Opening, conflict error) (*firstRecord, error) {
	o.RunID, o.Execution = p.Run.ID, p.Execution
	if o.Input == 0 {
		return firstOfContinuation(p, o)
	}
	in, err := s.log.Input(ctx, o.Input)
	if err != nil {
		return nil, err
	}
	thread, err := s.Latest(ctx, p.Run.Thread, o.Input)
	if err != nil {
		return nil, err
	}
	accepted, ok := thread.Renew(in.Accepted)
	switch {
	case ok || thread.Run == stream.Token(p.Run.ID): // an earlier attempt has opened the run
	case conflict != nil:
		return nil, conflict
	default: // the messages of the client stay, and it gets the conversation as a snapshot
		accepted = thread.Accept(Claim{History: HistoryAppend})
		accepted.Differs, accepted.Moved = true, true
	}
	o.ProtocolVersion, o.Accepted, o.Event = in.Input.ProtocolVersion, accepted.WithoutContent(), in.Event
	o.StateKept = thread.KeepsState(in, o.Keeps)
	started := &agui.RunStarted{ThreadID: p.Run.Thread.ID, RunID: p.Run.Shown(), ParentRunID: in.Input.ParentRunID, ProtocolVersion: agui.Version}
	if started.Metadata, err = o.Metadata(); err != nil {
		return nil, err
	}
	return &firstRecord{o, in.Description(), started}, nil
}

// firstOfContinuation completes the opening of a run without an input, which continues the run
// o.Continues with its conversation and state.
func firstOfContinuation(p stream.Place, o stream.Opening) (*firstRecord, error) {
	o.ProtocolVersion = agui.Version
	metadata, err := o.Metadata()
	if err != nil {
		return nil, err
	}
	if metadata == nil {
		metadata = agui.Metadata{}
	}
	if metadata["perdure.continues"], err = json.Marshal(stream.ShownRunID(o.Continues)); err != nil {
		return nil, fmt.Errorf("snapshot: encode run id: %w", err)
	}
	started := &agui.RunStarted{
		BaseEvent: agui.BaseEvent{Metadata: metadata}, ThreadID: p.Run.Thread.ID, RunID: p.Run.Shown(), ProtocolVersion: agui.Version,
	}
	return &firstRecord{opening: o, started: started}, nil
}
