package activities

import (
	"context"
	"encoding/json"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// beginning is what the first record of a run is made of.
type beginning struct {
	agent, revision string
	input           uint64
	digest          string
	// regardless opens the run although its input builds on a conversation that is gone: to say so.
	regardless bool
}

// openRun writes a run's first record, which accepts its input: the input was judged against the
// thread as it was then, and is judged again against the thread as it is now.
func (a *Activities) openRun(ctx context.Context, p stream.Place, b beginning, events ...agui.Event) (uint64, error) {
	in, err := a.Log.Input(ctx, b.input)
	if err != nil {
		return 0, err
	}
	thread, err := a.Log.Reduce(ctx, p.Run.Thread, b.input)
	if err != nil {
		return 0, err
	}
	opening := stream.Opening{
		RunID: p.Run.ID, Execution: p.Execution, Agent: b.agent, Revision: b.revision, Input: b.input, Digest: b.digest,
		ProtocolVersion: in.Input.ProtocolVersion,
	}
	accepted, ok := thread.Renew(in.Accepted)
	switch {
	case ok || thread.Run == stream.Token(p.Run.ID):
	case b.regardless: // what the client said stays; what it said it to is told by the snapshot
		accepted = thread.Accept(nil, stream.HistoryAppend)
		accepted.Differs = true
	default:
		return 0, temporal.NewNonRetryableApplicationError("the thread's conversation was cut while the run waited to start", "conversation_changed", nil)
	}
	opening.Accepted, opening.Said, opening.SaidBehind = accepted, len(in.Accepted.Tail), in.Accepted.Keep
	opening.StateKept = thread.KeepsState(in)
	opening.Accepted.Tail = nil // its content is in the proposal
	started := &agui.RunStarted{ThreadID: p.Run.Thread.ID, RunID: p.Run.ID, ParentRunID: in.Input.ParentRunID, ProtocolVersion: agui.Version}
	if started.Metadata, err = identify(b.revision); err != nil {
		return 0, err
	}
	return a.Log.Open(ctx, p, opening, append([]agui.Event{started}, events...)...)
}

// identify tells readers which revision of its agent a run has, under the key that capabilities use.
func identify(revision string) (agui.Metadata, error) {
	text, err := json.Marshal(revision)
	if err != nil {
		return nil, err
	}
	return agui.Metadata{"perdure.revision": text}, nil
}

// openStep writes the lifecycle events that lead to a step, and brings in what people have said since
// the one before it.
func (a *Activities) openStep(ctx context.Context, p stream.Place, s workflows.Step, steered []uint64) (uint64, error) {
	var events []agui.Event
	if s.Closes != "" {
		events = append(events, &agui.StepFinished{StepName: s.Closes})
	}
	var note any
	if len(steered) > 0 {
		note = stream.Steering{Inputs: steered}
	}
	return a.Log.Open(ctx, p, note, append(events, &agui.StepStarted{StepName: s.Name})...)
}
