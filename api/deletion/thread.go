package deletion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/lookup"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/silence"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Threads deletes threads. It has no state of its own, and is safe for concurrent use. All fields
// but Inbox, Events, Holds and Files are required.
type Threads struct {
	Finder   *lookup.Finder
	Commands *commands.Sender
	Watcher  *silence.Watcher
	// Inbox has the open interrupts of all threads. nil = there is none.
	Inbox *inbox.Store
	// Events has the open waits of all threads. nil = there is none.
	Events *events.Store
	// Holds has the legal holds. nil = there are none.
	Holds *store.Holds
	// Files has the files of threads. nil = there are none.
	Files *attachments.Attachments
}

// CheckHold refuses, with 409 legal_hold, the deletion of a thread that has a legal hold.
func (d *Threads) CheckHold(ctx context.Context, thread stream.Thread) error {
	isHeld, err := d.isHeld(ctx, thread)
	if !isHeld || err != nil {
		return err
	}
	return problem.New(http.StatusConflict, problem.CodeLegalHold, "the thread has a legal hold, or its tenant has one: it can be deleted when the hold is released")
}

// isHeld reports whether a thread, or its tenant, has a legal hold.
func (d *Threads) isHeld(ctx context.Context, thread stream.Thread) (bool, error) {
	if d.Holds == nil {
		return false, nil
	}
	hold, err := d.Holds.On(ctx, thread)
	return hold != nil, err
}

// Timeout bounds the deletion of one thread. It exceeds request.ResponseTimeout because a long
// thread has many blobs.
const Timeout = time.Minute

// Delete stops the active and the queued runs of a thread, and removes everything that is stored
// about it. snap is the latest snapshot. The caller has checked holds. After an error the deletion
// may be incomplete: another Delete continues it, or Finish does.
func (d *Threads) Delete(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return d.purge(ctx, thread, snap)
}

// Finish completes a deletion that has listed the thread as purged. It does nothing if there is none,
// and keeps the records and the files of a thread that has begun again.
func (d *Threads) Finish(ctx context.Context, thread stream.Thread) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	// Without old records, the files may be those of a new thread: an input has its files before its
	// first record. The deletion has released the old ones before it purged the records.
	hasRecords, err := d.Finder.Log.HasUnpurgedRecords(ctx, thread)
	if err != nil {
		return err
	}
	if hasRecords {
		if err := d.releaseFiles(ctx, thread); err != nil {
			return err
		}
	}
	return d.Finder.Log.FinishPurge(ctx, thread)
}

// releaseFiles deletes the files of a thread that is deleted, except those to which others refer.
func (d *Threads) releaseFiles(ctx context.Context, thread stream.Thread) error {
	if d.Files == nil {
		return nil
	}
	return d.Files.Release(ctx, thread)
}

// Expire deletes a thread that is settled since before a time. It calls record before the deletion, and
// returns false if the thread has a later record, a run that has not ended, or a legal hold. An input
// that arrives during the deletion may be deleted too.
func (d *Threads) Expire(ctx context.Context, thread stream.Thread, before time.Time, record func() error) (bool, error) {
	last, err := d.Finder.Log.Last(ctx, d.Finder.Log.ThreadSubject(thread)+".>")
	if last == nil || err != nil || !last.Time.Before(before) {
		return false, err
	}
	snap, err := d.Finder.Snapshots.Latest(ctx, thread, 0)
	if err != nil || snap.Seq != last.Seq || !snap.Status().IsSettled() {
		return false, err
	}
	if isHeld, err := d.isHeld(ctx, thread); isHeld || err != nil {
		return false, err
	}
	if err := record(); err != nil {
		return false, err
	}
	return true, d.Delete(ctx, thread, snap)
}

// purge stops the workflows of a thread, and removes its interrupts from the inbox, its files and then
// its records. The order matters: an active worker would write records after the purge, and the inbox
// finds its entries by the audit in the log.
func (d *Threads) purge(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	// The title is first: the workflow of the thread is not idle while that of the title lasts.
	if err := d.stopTitle(ctx, thread); err != nil {
		return err
	}
	if err := d.stopWorkflow(ctx, thread, snap); err != nil {
		return err
	}
	if d.Inbox != nil {
		if err := d.Inbox.Purge(ctx, thread); err != nil {
			return err
		}
	}
	if d.Events != nil {
		if err := d.Events.Purge(ctx, thread); err != nil {
			return err
		}
	}
	if err := d.releaseFiles(ctx, thread); err != nil {
		return err
	}
	return d.Finder.Snapshots.Purge(ctx, thread)
}

// stopTimeout is how long a workflow may take to become idle, and again to close. idlePollInterval
// is the pause between two checks.
const (
	stopTimeout      = 5 * time.Second
	idlePollInterval = 50 * time.Millisecond
)

// stopWorkflow ends a thread's workflow, and returns nil if there is none. It waits for active
// activities, because Temporal forgets activities that outlive their workflow, and they would write
// after the purge. A workflow that does not close in time, because no worker is available, is
// terminated.
func (d *Threads) stopWorkflow(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	id := dispatch.WorkflowID(thread)
	if err := d.stopRuns(ctx, thread, snap); err != nil {
		return err
	}
	// A workflow without an active run may wait for decisions, or be parked.
	err := d.Watcher.Temporal.CancelWorkflow(ctx, id, "")
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: cancel workflow: %w", err)
	}
	closeCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	_ = d.Watcher.Temporal.GetWorkflow(closeCtx, id, "").Get(closeCtx, nil) // only that it closes matters, not its result
	cancel()
	status, err := d.Watcher.StatusOf(ctx, stream.Run{Thread: thread}, "")
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("api: describe workflow: %w", err)
	case status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return nil
	}
	if err := d.Watcher.Temporal.TerminateWorkflow(ctx, id, "", "the thread is deleted"); err != nil && !isNotFound(err) {
		return fmt.Errorf("api: terminate workflow: %w", err)
	}
	return nil
}

// stopTitle terminates the workflow that has a model write the title of the thread; nil if there is
// none. An attempt that is under way is fenced by the purge.
func (d *Threads) stopTitle(ctx context.Context, thread stream.Thread) error {
	if err := d.Watcher.Temporal.TerminateWorkflow(ctx, dispatch.TitleWorkflowID(thread), "", "the thread is deleted"); err != nil && !isNotFound(err) {
		return fmt.Errorf("api: terminate workflow of the title: %w", err)
	}
	return nil
}

// stopRuns cancels the active run, so that its readers see it end, and then each run that starts
// from the queue. It returns when the workflow is idle or closed, or after stopTimeout without an
// error: stopWorkflow then continues with stronger means.
func (d *Threads) stopRuns(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) error {
	stopCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	tick := time.NewTicker(idlePollInterval)
	defer tick.Stop()
	cancelled := ""
	for {
		// Each run is cancelled once. A queued run begins when the run before it ends, and is
		// cancelled then.
		if snap.Status() == stream.StatusRunning && snap.RunID != cancelled {
			cancelled = snap.RunID
			if err := d.Commands.Cancel(ctx, stream.Run{Thread: thread, ID: cancelled}, "the thread is deleted"); err != nil {
				return err
			}
		}
		idle, err := d.isIdle(ctx, thread)
		if idle || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-stopCtx.Done():
			return ctx.Err()
		}
		if snap, err = d.Finder.Snapshots.Latest(ctx, thread, 0); err != nil {
			return err
		}
	}
}

// isIdle reports whether a thread's workflow is idle: it has closed, does not exist, or has neither
// activities, child workflows nor a workflow task.
func (d *Threads) isIdle(ctx context.Context, thread stream.Thread) (bool, error) {
	w, err := d.Watcher.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(thread), "")
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("api: describe workflow: %w", err)
	}
	// A workflow task may schedule further activities, so a pending one counts as work.
	hasWork := len(w.GetPendingActivities())+len(w.GetPendingChildren()) > 0 || w.GetPendingWorkflowTask() != nil
	return !hasWork || w.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// isNotFound reports whether Temporal does not know the workflow.
func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}
