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
	return runShortStep(inStep(ctx, in.Step), a, func(ctx context.Context) (uint64, error) { return a.hold(ctx, in) })
}

// hold writes the record. Interrupts that people decide are shown in full, client tool calls by
// their IDs; decided ones are left out.
func (a *Activities) hold(ctx context.Context, in runs.AnnounceInterrupts) (uint64, error) {
	open := *in.Interrupts
	open.Items = nil
	var theirs []string
	for _, c := range in.Interrupts.Items {
		switch {
		case c.Decision != nil:
		case c.Client:
			theirs = append(theirs, c.ID)
		default:
			open.Items = append(open.Items, c)
		}
	}
	interrupts, err := a.interrupts(ctx, runOf(in.Run), &open)
	if err != nil {
		return 0, err
	}
	told, err := stream.HeldEvents(interrupts, theirs)
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
	return a.Log.OpenStep(ctx, place, nil, append(events, told...)...)
}
