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
	// StatusFailed: the last run ended with an error. A new run may follow.
	StatusFailed Status = "failed"
	// StatusIdle: none of these. The last run has finished or was cancelled, or there is none yet.
	StatusIdle Status = "idle"
)

// Statuses are all statuses.
var Statuses = []Status{StatusRunning, StatusPaused, StatusWaiting, StatusFailed, StatusIdle}

// IsSettled reports whether no run is active and no interrupt is open: the thread changes only with
// a new input.
func (s Status) IsSettled() bool { return s == StatusIdle || s == StatusFailed }

// StatusAfter returns the status of a thread whose last run ended with this event.
func StatusAfter(last agui.Event) Status {
	switch e := last.(type) {
	case *agui.RunError:
		return StatusFailed
	case *agui.RunFinished:
		if e.Outcome != nil && len(e.Outcome.Interrupts)+len(e.Outcome.PendingToolCallIDs) > 0 {
			return StatusWaiting
		}
	}
	return StatusIdle
}
