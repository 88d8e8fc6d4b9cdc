package stream

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/agui"
)

// LastEvent returns the last event of a record; nil = the record has no events.
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

// Status is what a thread does now.
type Status string

const (
	// StatusRunning: a run is active. A held run is active.
	StatusRunning Status = "running"
	// StatusPaused: an operator has paused the active run. Only the index of threads has this
	// status.
	StatusPaused Status = "paused"
	// StatusWaiting: the last run ended with interrupts, or client tool calls, that are not
	// resolved.
	StatusWaiting Status = "waiting"
	// StatusIdle: no run is active, and no interrupt is open.
	StatusIdle Status = "idle"
)

// StatusAfter returns the status of a thread whose last run ended with this event.
func StatusAfter(last agui.Event) Status {
	if e, ok := last.(*agui.RunFinished); ok && e.Outcome != nil && len(e.Outcome.Interrupts)+len(e.Outcome.PendingToolCallIDs) > 0 {
		return StatusWaiting
	}
	return StatusIdle
}
