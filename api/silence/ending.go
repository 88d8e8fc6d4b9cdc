package silence

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/trace"
)

// countTimeout bounds the count of a run for the report of usage.
const countTimeout = 5 * time.Second

// endRun writes the terminal record, RUN_ERROR with the code workflow_<status>, of a run
// that has begun, counts the run, and logs a warning. It first takes over the lane, which fences a
// late attempt and retracts its unfinished answer. If the run has ended meanwhile, it writes, counts
// and logs nothing.
func (w *Watcher) endRun(ctx context.Context, place stream.Place, status string) error {
	var end *stream.Record                    // the end that another writer has written; nil = none
	err := w.Finder.Log.Supersede(ctx, place) // an unfinished answer is not part of the conversation
	fold := w.readRun(ctx, place.Run)
	if err == nil {
		// The terminal record names the agent for the index of threads. The index is a cache, so a
		// failure here only makes an entry less exact.
		if thread, err := w.Finder.Snapshots.Latest(ctx, place.Run.Thread, 0); err == nil && thread.Handed != nil {
			place.Agent = thread.Handed.To
		}
		_, end, err = w.Finder.Log.Seal(ctx, place, terminalEvent(status, fold.Run()))
	}
	if err != nil {
		return fmt.Errorf("api: end run %q: %w", place.Run.ID, err)
	}
	if end != nil {
		return nil
	}
	w.Finder.Logger.WarnContext(ctx, "ended a run whose workflow was closed from outside",
		"tenant", place.Run.Thread.Tenant, "thread", place.Run.Thread.ID, "run", place.Run.ID, "status", status)
	w.countRun(ctx, place, fold)
	return nil
}

// readRun returns the fold of a run, which knows the usage of the calls that have ended. A run that
// cannot be read must end, too: the fold then lacks records.
func (w *Watcher) readRun(ctx context.Context, run stream.Run) *trace.Fold {
	fold, err := trace.ReadSegment(ctx, w.Finder.Snapshots, run)
	if err != nil && ctx.Err() == nil {
		w.Finder.Logger.WarnContext(ctx, "the usage of a run whose workflow was closed from outside could not be read",
			"tenant", run.Thread.Tenant, "thread", run.Thread.ID, "run", run.ID, "error", err)
	}
	return fold
}

// terminalEvent returns the last event of a run, with its usage and its cost. The currency of the
// cost is unknown: only workers have prices.
func terminalEvent(status string, run trace.Run) *agui.RunError {
	e := &agui.RunError{Code: "workflow_" + status, Message: "the workflow of the run was closed from outside", Usage: run.Usage}
	if run.Cost != nil {
		cost, _ := json.Marshal(run.Cost) // always encodable
		e.Metadata = agui.Metadata{stream.MetadataCost: cost}
	}
	return e
}

// countRun adds a run that this process has ended to the report of usage. After a failure, or the
// death of the process before it, the run is missing there.
func (w *Watcher) countRun(ctx context.Context, place stream.Place, fold *trace.Fold) {
	if w.Usage == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
	defer cancel()
	ended, err := usage.EndedRun(ctx, w.Finder.Log, place.Run)
	if err == nil {
		ended.Agent, ended.Outcome, ended.Usage = cmp.Or(place.Agent, fold.Run().Agent), runs.OutcomeError, fold.Usage()
		err = w.Usage.Count(ctx, ended)
	}
	if err != nil {
		w.Finder.Logger.WarnContext(ctx, "the usage of a run could not be counted, and is missing in the report of usage",
			"tenant", place.Run.Thread.Tenant, "thread", place.Run.Thread.ID, "run", place.Run.ID, "error", err)
	}
}
