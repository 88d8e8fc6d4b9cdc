package snapshot

import (
	"context"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// addRun adds the note of a run that begins.
func (f *fold) addRun(rec *stream.Record, o *stream.Opening) {
	f.r.Active = rec.Time
	f.r.Runs = append(slices.Clip(f.r.Runs), RunNote{
		ID: o.RunID, Agent: o.Agent, Revision: o.Revision, Continues: o.Continues, Began: rec.Time,
	})
}

// endRun adds the outcome and the usage to the note of the last run. For a cancelled run it reads
// the request to cancel from the log.
func (f *fold) endRun(ctx context.Context, rec *stream.Record, last agui.Event) error {
	if len(f.r.Runs) == 0 {
		return nil
	}
	f.r.Runs = slices.Clone(f.r.Runs) // other snapshots share the list
	run := &f.r.Runs[len(f.r.Runs)-1]
	run.Ended = rec.Time
	run.Outcome, run.Code = outcomeOf(last)
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

// outcomeOf returns the outcome of a run, and the code of its error, by its last event. An unknown
// event counts as an error.
func outcomeOf(last agui.Event) (outcome, code string) {
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
func (f *fold) addRunUsage(run *RunNote, more []agui.TokenUsage, metadata agui.Metadata) {
	run.Usage = addUsage(nil, more)
	f.r.Usage = addUsage(f.r.Usage, more)
	if cut := estimatedIn(metadata); cut.Calls > 0 {
		run.Estimated = &cut
		before := EstimatedUsage{}
		if f.r.Estimated != nil {
			before = *f.r.Estimated
		}
		f.r.Estimated = &EstimatedUsage{Calls: before.Calls + cut.Calls, Usage: addUsage(before.Usage, cut.Usage)}
	}
}
