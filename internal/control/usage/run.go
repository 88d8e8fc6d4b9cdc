package usage

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// Run is a run that has ended, or a part of one that is counted apart.
type Run struct {
	stream.Run

	// Part names a part of the run whose usage the run does not have, such as "title"; "" = the run
	// itself. A part adds tokens and cost to the report, and neither a run nor a duration.
	Part string

	Agent string
	// Ended is the time of the run's terminal record. It decides the day, so it must be the same in
	// all tries of Count.
	Ended    time.Time
	Duration time.Duration
	Outcome  runs.Outcome
	// Usage has one entry for each model, and Currency is that of their costs; "" = it is unknown.
	Usage    []runs.Usage
	Currency string
}

// EndedRun returns a run of the log as Count counts it, with the times of its first and its terminal
// record. The caller sets the other fields.
func EndedRun(ctx context.Context, l *stream.Log, run stream.Run) (Run, error) {
	first, err := l.First(ctx, l.LaneSubject(run, stream.LaneMain), 1)
	if err != nil {
		return Run{}, err
	}
	end, err := l.TerminalRecord(ctx, run)
	if err != nil {
		return Run{}, err
	}
	if first == nil || end == nil {
		return Run{}, errors.New("usage: the log lacks records of the run")
	}
	return Run{Run: run, Ended: end.Time, Duration: end.Time.Sub(first.Time)}, nil
}
