package stream

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// LastEvent is the last of a record's events; nil = there is none.
func (r *Record) LastEvent(ctx context.Context) (agui.Event, error) {
	events, err := r.Events(ctx)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	e, err := agui.Decode(events[len(events)-1])
	if err != nil {
		return nil, fmt.Errorf("stream: record %d: %w", r.Seq, err)
	}
	return e, nil
}

// Status is what becomes of a thread if nobody does anything.
type Status string

const (
	// StatusRunning: a run is active. One that is held goes on being active while it waits.
	StatusRunning Status = "running"
	// StatusPaused: a run is active, and an operator has paused it. Only the index of threads has this status.
	StatusPaused Status = "paused"
	// StatusWaiting: the last run ended with questions, or calls of its client's, that nobody has answered.
	StatusWaiting Status = "waiting"
	// StatusIdle: nothing is under way.
	StatusIdle Status = "idle"
)

// StatusAfter is the status of a thread whose last run ended with an event.
func StatusAfter(last agui.Event) Status {
	if e, ok := last.(*agui.RunFinished); ok && e.Outcome != nil && len(e.Outcome.Interrupts)+len(e.Outcome.PendingToolCallIDs) > 0 {
		return StatusWaiting
	}
	return StatusIdle
}
