package snapshot

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// RunNote is what a thread keeps of one of its runs.
type RunNote struct {
	// ID is the run's, as the log has it: with the mark of its segment, if it is not the first.
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// Revision is that of the agent.
	Revision string `json:"revision,omitempty"`
	// Continues is the run that this one continues, without an input of its own; "" = none.
	Continues string    `json:"continues,omitempty"`
	Began     time.Time `json:"began"`
	// Ended is zero while the run goes on.
	Ended time.Time `json:"ended,omitzero"`
	// Outcome is success, interrupt, cancelled or, with a code, error; empty while the run goes on.
	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"`
	// Superseded tells which messages the run's input took out of the conversation; nil = none.
	Superseded *Superseded `json:"superseded,omitempty"`
	// Cancel is the request that cancelled the run.
	Cancel *stream.Cancel `json:"cancel,omitempty"`
	// Usage is what the run says that it has used, each model once; Estimated is the part of it that is estimated.
	Usage     []agui.TokenUsage `json:"usage,omitempty"`
	Estimated *EstimatedUsage   `json:"estimated,omitempty"`
}

// Segment returns the number of the segment of its run ID, from 1.
func (n RunNote) Segment() int {
	_, number, marked := strings.Cut(n.ID, stream.SegmentMark)
	if !marked {
		return 1
	}
	segment, _ := strconv.Atoi(number) // it is ours
	return segment
}

// OutcomeError is the outcome of a run that ended with RUN_ERROR; the others are AG-UI's.
const OutcomeError = "error"

// addRun adds a run.
func (f *fold) addRun(rec *stream.Record, o *stream.Opening) {
	f.r.Active = rec.Time
	f.r.Runs = append(slices.Clip(f.r.Runs), RunNote{
		ID: o.RunID, Agent: o.Agent, Revision: o.Revision, Continues: o.Continues, Began: rec.Time,
	})
}

// endRun adds how the last run ended, and its usage.
func (f *fold) endRun(ctx context.Context, rec *stream.Record, last agui.Event) error {
	if len(f.r.Runs) == 0 {
		return nil
	}
	f.r.Runs = slices.Clone(f.r.Runs) // others hold the list as it was
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

// outcomeOf returns the outcome of a run, by its last event.
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

// addRunUsage sets the usage of a run, and adds it to the thread's.
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
