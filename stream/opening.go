package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// Opening is the note beside the first events of a run: who it is, and which conversation it has.
type Opening struct {
	RunID string `json:"run"`
	// Execution is the Temporal run id of the execution that began the run.
	Execution string `json:"execution"`
	Agent     string `json:"agent"`
	Revision  string `json:"revision"`
	// Input is the sequence of the accepted proposal, Digest that of its decoded content. There is none in
	// a run that nobody asked for, which goes on with what is there behind the run Continues.
	Input     uint64 `json:"input"`
	Digest    string `json:"digest"`
	Continues string `json:"continues,omitempty"`
	// ProtocolVersion is what the client said it speaks; a first reader of the run is spoken to so.
	ProtocolVersion string     `json:"protocolVersion,omitempty"`
	Accepted        Acceptance `json:"accepted"` // without content: that is in the proposal
	// Said is how many messages the client has said behind the first SaidBehind of the thread. More may
	// be kept by now: what came while the run waited.
	Said       int `json:"said,omitempty"`
	SaidBehind int `json:"saidBehind,omitempty"`
	// Edits tells that tool calls of the run are made with other arguments than readers have seen.
	Edits bool `json:"edits,omitempty"`
	// Keeps is a member of the state that stays as the thread has it, whatever the input says; "" = none does.
	Keeps string `json:"keeps,omitempty"`
	// StateKept tells that the run begins with a state that its client does not know.
	StateKept bool `json:"stateKept,omitempty"`
}

// ErrConversationChanged: the input builds on messages that have been cut since it was judged.
var ErrConversationChanged = errors.New("stream: the conversation was cut while the run waited to start")

// OpenRun writes a run's first record, which accepts its input: that was judged against the thread as it
// was then, and is judged again against the thread as it is now. The opening says who begins which run
// with which input; the rest of it is found out here. Place.Run and Place.Execution go without saying.
// regardless opens the run also where that is ErrConversationChanged: to say how it ended. events come
// behind RUN_STARTED.
func (l *Log) OpenRun(ctx context.Context, p Place, o Opening, regardless bool, events ...agui.Event) (uint64, error) {
	o.RunID, o.Execution = p.Run.ID, p.Execution
	if o.Input == 0 {
		return l.openContinuation(ctx, p, o, events)
	}
	in, err := l.Input(ctx, o.Input)
	if err != nil {
		return 0, err
	}
	thread, err := l.Reduce(ctx, p.Run.Thread, o.Input)
	if err != nil {
		return 0, err
	}
	accepted, ok := thread.Renew(in.Accepted)
	switch {
	case ok || thread.Run == Token(p.Run.ID):
	case regardless: // what the client said stays; what it said it to is told by the snapshot
		accepted = thread.Accept(Claim{History: HistoryAppend})
		accepted.Differs = true
	default:
		return 0, ErrConversationChanged
	}
	o.ProtocolVersion, o.Accepted = in.Input.ProtocolVersion, accepted.withoutContent()
	o.Said, o.SaidBehind, o.StateKept = len(in.Accepted.Tail), in.Accepted.Keep, thread.KeepsState(in, o.Keeps)
	started := &agui.RunStarted{ThreadID: p.Run.Thread.ID, RunID: p.Run.Shown(), ParentRunID: in.Input.ParentRunID, ProtocolVersion: agui.Version}
	if started.Metadata, err = o.metadata(); err != nil {
		return 0, err
	}
	return l.openListed(ctx, p, o, append([]agui.Event{started}, events...))
}

// openContinuation opens a run that nobody asked for.
func (l *Log) openContinuation(ctx context.Context, p Place, o Opening, events []agui.Event) (uint64, error) {
	o.ProtocolVersion = agui.Version
	metadata, err := o.metadata()
	if err != nil {
		return 0, err
	}
	if metadata == nil {
		metadata = agui.Metadata{}
	}
	if metadata["perdure.continues"], err = json.Marshal(ShownRunID(o.Continues)); err != nil {
		return 0, fmt.Errorf("stream: encode run id: %w", err)
	}
	started := &agui.RunStarted{
		BaseEvent: agui.BaseEvent{Metadata: metadata}, ThreadID: p.Run.Thread.ID, RunID: p.Run.Shown(), ProtocolVersion: agui.Version,
	}
	return l.openListed(ctx, p, o, append([]agui.Event{started}, events...))
}

// openListed writes the opening, and that the thread has a run now. Whoever comes again does both again.
func (l *Log) openListed(ctx context.Context, p Place, o Opening, events []agui.Event) (uint64, error) {
	seq, err := l.Open(ctx, p, o, events...)
	if err != nil {
		return 0, err
	}
	return seq, l.listOpened(ctx, p.Run, o.Agent, seq)
}

// metadata tells readers which revision of its agent a run has, under the key that capabilities use.
func (o Opening) metadata() (agui.Metadata, error) {
	if o.Revision == "" {
		return nil, nil
	}
	text, err := json.Marshal(o.Revision)
	if err != nil {
		return nil, err
	}
	return agui.Metadata{"perdure.revision": text}, nil
}
