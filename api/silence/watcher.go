// Package silence ends runs whose workflow has closed without writing their end.
//
// The workflow of a run may be terminated, time out, or fail to replay. Then nothing writes the end
// of the run. A node with a reader of a silent run asks Temporal. If the workflow has closed and
// the log has no end, the node writes one, under the fence. Apart from proposals, cancels, forks,
// and the opening of such a run, the API writes nothing.
package silence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/stream"
)

// Watcher looks after silent runs. It is safe for concurrent use.
type Watcher struct {
	Find     *lookup.Finder
	Temporal client.Client
	looks    silences
}

// NewWatcher returns a Watcher that looks after a run when it has been silent for some time, and
// then less and less often.
func NewWatcher(find *lookup.Finder, temporal client.Client, after time.Duration) *Watcher {
	return &Watcher{Find: find, Temporal: temporal, looks: silences{first: after, runs: map[stream.Run]look{}}}
}

// LookAfter writes the end of a silent run if its workflow has closed without one. It is for a
// reader of the run: it fails only with stream.ErrGone, if the thread was purged, and logs other
// errors.
func (w *Watcher) LookAfter(ctx context.Context, run stream.Run) error {
	err := w.check(ctx, run)
	if errors.Is(err, stream.ErrGone) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		w.Find.Logger.WarnContext(ctx, "the workflow of a silent run could not be checked", "tenant", run.Thread.Tenant, "thread", run.Thread.ID, "run", run.ID, "error", err)
	}
	return nil
}

// check writes the end of a run whose workflow has closed without one. It returns stream.ErrGone if
// the thread was purged.
func (w *Watcher) check(ctx context.Context, run stream.Run) error {
	waited, due := w.looks.due(run, time.Now())
	if !due {
		return nil
	}
	begun, err := w.Find.Log.Begun(ctx, run)
	switch {
	case err != nil:
		return err
	case begun == nil && w.purged(ctx, run.Thread):
		return stream.ErrGone
	case begun == nil && waited < lostSilences*w.looks.first:
		return nil
	case begun == nil:
		return w.checkLost(ctx, run)
	}
	status, err := w.closedAs(ctx, run, begun.Execution)
	if err != nil || status == "" {
		return err
	}
	return w.endFromOutside(ctx, silencePlace(run, begun.Execution), status)
}

func (w *Watcher) purged(ctx context.Context, thread stream.Thread) bool {
	purged, err := w.Find.Log.Purged(ctx, thread)
	return purged && err == nil
}

func silencePlace(run stream.Run, execution string) stream.Place {
	return stream.Place{Run: run, Lane: stream.LaneMain, Step: "silence", Execution: execution}
}

// endFromOutside writes the end of a run that has begun.
func (w *Watcher) endFromOutside(ctx context.Context, place stream.Place, status string) error {
	err := w.Find.Log.Supersede(ctx, place, false) // an unfinished answer is not part of the conversation
	if err == nil {
		if thread, err := w.Find.Snapshots.Latest(ctx, place.Run.Thread, 0); err == nil && thread.Handed != nil { // else the list is a cache
			place.Agent = thread.Handed.To
		}
		_, _, err = w.Find.Log.Seal(ctx, place, &agui.RunError{Code: "workflow_" + status, Message: "the run's workflow ended from outside"})
	}
	if err != nil {
		return fmt.Errorf("api: end run %q: %w", place.Run.ID, err)
	}
	w.Find.Logger.WarnContext(ctx, "a run was ended whose workflow had closed without ending it", "tenant", place.Run.Thread.Tenant, "thread", place.Run.Thread.ID, "run", place.Run.ID, "status", status)
	return nil
}

// closedAs returns how a run's workflow closed: "" = it is open, "lost" = Temporal does not know
// it. A run that continued as new is in the thread's current execution.
func (w *Watcher) closedAs(ctx context.Context, run stream.Run, execution string) (string, error) {
	status, err := w.StatusOf(ctx, run, execution)
	if err == nil && status == enums.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
		status, err = w.StatusOf(ctx, run, "")
	}
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return "lost", nil
	case err != nil:
		return "", fmt.Errorf("api: describe workflow: %w", err)
	}
	return closings[status], nil
}

// StatusOf returns the status of an execution; "" is the thread's latest.
func (w *Watcher) StatusOf(ctx context.Context, run stream.Run, execution string) (enums.WorkflowExecutionStatus, error) {
	description, err := w.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(run.Thread), execution)
	return description.GetWorkflowExecutionInfo().GetStatus(), err
}

// closings are the ways in which a workflow closes. One that continued as new is open.
var closings = map[enums.WorkflowExecutionStatus]string{
	enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:  "completed",
	enums.WORKFLOW_EXECUTION_STATUS_FAILED:     "failed",
	enums.WORKFLOW_EXECUTION_STATUS_CANCELED:   "cancelled",
	enums.WORKFLOW_EXECUTION_STATUS_TERMINATED: "terminated",
	enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  "timed_out",
}
