package silence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/stream"
)

// Watcher ends silent runs whose workflow has closed. A node has one, which remembers when it
// checked each run. It is safe for concurrent use, and owns no goroutine: readers call Check.
type Watcher struct {
	Finder   *lookup.Finder
	Temporal client.Client
	// Usage counts the runs that the Watcher ends. nil = they are not counted.
	Usage  *usage.Ledger
	checks schedule
}

// NewWatcher returns a Watcher. ledger counts the runs that it ends; nil = they are not counted.
// after is the silence after which readers call Check. The Watcher checks a run at the first call,
// and then after pauses that double, up to a minute.
func NewWatcher(find *lookup.Finder, temporal client.Client, ledger *usage.Ledger, after time.Duration) *Watcher {
	return &Watcher{Finder: find, Temporal: temporal, Usage: ledger, checks: schedule{first: after, runs: map[stream.Run]runCheck{}}}
}

// Check writes the end of a silent run if its workflow has closed without one. Readers call it
// each time they have received nothing for a while; it returns at once if the run is not due. It
// fails only with stream.ErrGone, if the thread was purged: then the reader's stream ends. Other
// failures are logged, because the reader can still wait for records.
func (w *Watcher) Check(ctx context.Context, run stream.Run) error {
	err := w.checkRun(ctx, run)
	if errors.Is(err, stream.ErrGone) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		w.Finder.Logger.WarnContext(ctx, "the workflow of a silent run could not be checked", "tenant", run.Thread.Tenant, "thread", run.Thread.ID, "run", run.ID, "error", err)
	}
	return nil
}

// checkRun does the work of Check and returns every error. A run that has begun is checked by the
// execution that opened it; a run that has not begun may be lost (see checkLost).
func (w *Watcher) checkRun(ctx context.Context, run stream.Run) error {
	waited, due := w.checks.due(run, time.Now())
	if !due {
		return nil
	}
	opening, err := w.Finder.Log.OpeningOf(ctx, run)
	switch {
	case err != nil:
		return err
	case opening == nil && w.isPurged(ctx, run.Thread):
		return stream.ErrGone
	// The client's POST may be about to start the workflow, or the run may be queued.
	case opening == nil && waited < silencesBeforeLost*w.checks.first:
		return nil
	case opening == nil:
		return w.checkLost(ctx, run)
	}
	status, err := w.closeStatus(ctx, run, opening.Execution)
	if err != nil || status == "" {
		return err
	}
	return w.endRun(ctx, silencePlace(run, opening.Execution), status)
}

// isPurged reports whether the log has no record of a thread. An error counts as false: the thread
// is then checked again later.
func (w *Watcher) isPurged(ctx context.Context, thread stream.Thread) bool {
	hasThread, err := w.Finder.Log.HasThread(ctx, thread)
	return !hasThread && err == nil
}

// silencePlace returns the place in the log at which this package writes for a run: the main lane,
// under the fence of the execution.
func silencePlace(run stream.Run, execution string) stream.Place {
	return stream.Place{Run: run, Lane: stream.LaneMain, Step: "silence", Execution: execution}
}

// closeStatus returns how the workflow of a run closed, as the suffix of an error code: "" = it is
// open, "lost" = Temporal does not know it. If the execution continued as new, the thread's latest
// execution has the run.
func (w *Watcher) closeStatus(ctx context.Context, run stream.Run, execution string) (string, error) {
	status, err := w.StatusOf(ctx, run, execution)
	if err == nil && status == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
		status, err = w.StatusOf(ctx, run, "")
	}
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return "lost", nil
	case err != nil:
		return "", fmt.Errorf("api: describe workflow: %w", err)
	}
	return closeStatuses[status], nil
}

// StatusOf returns Temporal's status of an execution of the thread's workflow. execution is a
// Temporal run ID; "" is the thread's latest execution. The error is a serviceerror.NotFound if
// Temporal does not know it, for instance after its retention.
func (w *Watcher) StatusOf(ctx context.Context, run stream.Run, execution string) (enums.WorkflowExecutionStatus, error) {
	description, err := w.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(run.Thread), execution)
	return description.GetWorkflowExecutionInfo().GetStatus(), err
}

// closeStatuses are the names of the ways in which a workflow closes, as suffixes of error codes. A
// status that is missing here, such as continued as new, counts as open.
var closeStatuses = map[enums.WorkflowExecutionStatus]string{
	enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:  "completed",
	enums.WORKFLOW_EXECUTION_STATUS_FAILED:     "failed",
	enums.WORKFLOW_EXECUTION_STATUS_CANCELED:   "cancelled",
	enums.WORKFLOW_EXECUTION_STATUS_TERMINATED: "terminated",
	enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  "timed_out",
}
