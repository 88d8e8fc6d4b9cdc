package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// addRun adds the note of a run that begins.
func (f *folder) addRun(rec *stream.Record, o *stream.Opening) {
	f.snap.Active = rec.Time
	f.snap.Runs = append(slices.Clip(f.snap.Runs), RunNote{
		ID: o.RunID, Agent: o.Agent, Revision: o.Revision, Continues: o.Continues, Event: o.Event, Began: rec.Time,
	})
}

// endRun adds the outcome and the usage to the note of the last run. For a cancelled run it reads
// the request to cancel from the log.
func (f *folder) endRun(ctx context.Context, rec *stream.Record, last agui.Event) error {
	if len(f.snap.Runs) == 0 {
		return nil
	}
	f.snap.Runs = slices.Clone(f.snap.Runs) // other snapshots share the list
	run := &f.snap.Runs[len(f.snap.Runs)-1]
	run.Ended = rec.Time
	run.Outcome, run.Code = runOutcome(last)
	switch e := last.(type) {
	case *agui.RunFinished:
		f.addRunUsage(run, e.Usage, e.Metadata)
	case *agui.RunError:
		f.addRunUsage(run, e.Usage, e.Metadata)
	}
	if run.Outcome != string(agui.OutcomeCancelled) {
		return nil
	}
	var err error
	run.Cancel, err = rec.Cancel(ctx)
	return err
}

// runOutcome returns the outcome of a run, and the code of its error, by its last event. An unknown
// event counts as an error.
func runOutcome(last agui.Event) (outcome, code string) {
	switch e := last.(type) {
	case *agui.RunFinished:
		if e.Outcome != nil {
			return string(e.Outcome.Type), ""
		}
		return string(agui.OutcomeSuccess), ""
	case *agui.RunError:
		return OutcomeError, e.Code
	}
	return OutcomeError, ""
}

// addRunUsage sets the usage of a run, and adds it to the thread's. The estimated part is in the
// event's metadata.
func (f *folder) addRunUsage(run *RunNote, usage []agui.TokenUsage, metadata agui.Metadata) {
	run.Usage = addUsage(nil, usage)
	f.snap.Usage = addUsage(f.snap.Usage, usage)
	if estimated := estimatedIn(metadata); estimated.Calls > 0 {
		run.Estimated = &estimated
		before := EstimatedUsage{}
		if f.snap.Estimated != nil {
			before = *f.snap.Estimated
		}
		f.snap.Estimated = &EstimatedUsage{Calls: before.Calls + estimated.Calls, Usage: addUsage(before.Usage, estimated.Usage)}
	}
}
