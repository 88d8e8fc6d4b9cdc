package stream

import (
	"context"
	"time"
)

// Retrying tells why a run does not get ahead: an attempt of an activity has failed, and Temporal
// tries again. If several activities of a run are retried concurrently, the index has one of them.
type Retrying struct {
	// Step is the ID of the step, Activity the name of its Temporal activity, and Name the step as
	// clients see it; "" = they see none.
	Step     string `json:"step"`
	Activity string `json:"activity"`
	Name     string `json:"name,omitempty"`
	// Attempt is the number of the attempt that failed last, from 1, and Error why. The error has no
	// content of the conversation.
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	// Since is when the first attempt began.
	Since time.Time `json:"since"`
}

// SetRetrying lists the active run of a thread as retrying. It does nothing if the index has another
// run of the thread, or the end of this one: the entries about the beginning and the end of a run
// have no Retrying.
func (l *Log) SetRetrying(ctx context.Context, run Run, r Retrying) error {
	r.Since = r.Since.UTC().Truncate(time.Millisecond)
	_, err := l.changeEntry(ctx, run.Thread, func(entry *IndexEntry) bool {
		if !entry.isActive(run) {
			return false
		}
		entry.Retrying = &r
		return true
	})
	return err
}

// ClearRetrying removes what SetRetrying has listed about a step of a run.
func (l *Log) ClearRetrying(ctx context.Context, run Run, step string) error {
	_, err := l.changeEntry(ctx, run.Thread, func(entry *IndexEntry) bool {
		if !entry.isActive(run) || entry.Retrying == nil || entry.Retrying.Step != step {
			return false
		}
		entry.Retrying = nil
		return true
	})
	return err
}

// isActive reports whether the index lists the run as active.
func (e *IndexEntry) isActive(run Run) bool {
	return e.RunID == run.Shown() && (e.Status == StatusRunning || e.Status == StatusPaused)
}
