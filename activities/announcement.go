package activities

import (
	"context"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// AnnounceInterrupts is interrupt.announce.v1: it announces to readers what a held run waits for,
// with custom events in an open record. The AG-UI run stays open. It returns the sequence of that
// record. A later attempt finds the record.
func (a *Activities) AnnounceInterrupts(ctx context.Context, in runs.AnnounceInterrupts) (uint64, error) {
	return withAttempt(inStep(ctx, in.Step), a, func(ctx context.Context) (uint64, error) { return a.announceInterrupts(ctx, in) })
}

// announceInterrupts writes the record. Interrupts that approvers and users decide are shown in
// full, client tool calls by their IDs; decided ones are left out.
func (a *Activities) announceInterrupts(ctx context.Context, in runs.AnnounceInterrupts) (uint64, error) {
	open := *in.Interrupts
	open.Items = nil
	var clientCalls []string
	for _, interrupt := range in.Interrupts.Items {
		switch {
		case interrupt.Decision != nil:
		case interrupt.Client:
			clientCalls = append(clientCalls, interrupt.ID)
		default:
			open.Items = append(open.Items, interrupt)
		}
	}
	interrupts, err := a.openInterrupts(ctx, runOf(in.Run), &open)
	if err != nil {
		return 0, err
	}
	heldEvents, err := stream.HeldEvents(interrupts, clientCalls)
	if err != nil {
		return 0, err
	}
	var events []agui.Event
	if in.Closes != "" {
		events = append(events, &agui.StepFinished{StepName: in.Closes})
	}
	place := agentPlace(in.Step, in.ID)
	// Children of the run still work, and the agent's lane may have another writer. The lane for
	// interrupts has one writer, the thread.
	if in.Concurrent {
		place.Lane = stream.LaneInterrupts
	}
	return a.Log.OpenStep(ctx, place, nil, append(events, heldEvents...)...)
}
