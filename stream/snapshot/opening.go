package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// ErrConversationChanged: the input builds on messages that have been cut since it was judged.
var ErrConversationChanged = errors.New("snapshot: the conversation was cut while the run waited to start")

// OpenRun writes a run's first record, which accepts its input: that was judged against the thread as it
// was then, and is judged again against the thread as it is now. The opening says who begins which run
// with which input; the rest of it is found out here. Place.Run and Place.Execution go without saying.
// regardless opens the run also where that is ErrConversationChanged: to say how it ended. events come
// behind RUN_STARTED.
func (s *Store) OpenRun(ctx context.Context, p stream.Place, o stream.Opening, regardless bool, events ...agui.Event) (uint64, error) {
	o.RunID, o.Execution = p.Run.ID, p.Execution
	if o.Input == 0 {
		return s.openContinuation(ctx, p, o, events)
	}
	in, err := s.log.Input(ctx, o.Input)
	if err != nil {
		return 0, err
	}
	thread, err := s.Latest(ctx, p.Run.Thread, o.Input)
	if err != nil {
		return 0, err
	}
	accepted, ok := thread.Renew(in.Accepted)
	switch {
	case ok || thread.Run == stream.Token(p.Run.ID):
	case regardless: // what the client said stays; what it said it to is told by the snapshot
		accepted = thread.Accept(Claim{History: HistoryAppend})
		accepted.Differs = true
	default:
		return 0, ErrConversationChanged
	}
	o.ProtocolVersion, o.Accepted = in.Input.ProtocolVersion, accepted.WithoutContent()
	o.Said, o.SaidBehind, o.StateKept = len(in.Accepted.Tail), in.Accepted.Keep, thread.KeepsState(in, o.Keeps)
	started := &agui.RunStarted{ThreadID: p.Run.Thread.ID, RunID: p.Run.Shown(), ParentRunID: in.Input.ParentRunID, ProtocolVersion: agui.Version}
	if started.Metadata, err = o.Metadata(); err != nil {
		return 0, err
	}
	return s.log.OpenRun(ctx, p, o, append([]agui.Event{started}, events...))
}

// openContinuation opens a run that nobody asked for.
func (s *Store) openContinuation(ctx context.Context, p stream.Place, o stream.Opening, events []agui.Event) (uint64, error) {
	o.ProtocolVersion = agui.Version
	metadata, err := o.Metadata()
	if err != nil {
		return 0, err
	}
	if metadata == nil {
		metadata = agui.Metadata{}
	}
	if metadata["perdure.continues"], err = json.Marshal(stream.ShownRunID(o.Continues)); err != nil {
		return 0, fmt.Errorf("snapshot: encode run id: %w", err)
	}
	started := &agui.RunStarted{
		BaseEvent: agui.BaseEvent{Metadata: metadata}, ThreadID: p.Run.Thread.ID, RunID: p.Run.Shown(), ProtocolVersion: agui.Version,
	}
	return s.log.OpenRun(ctx, p, o, append([]agui.Event{started}, events...))
}
