package dispatch

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// ErrUnknownRun: the log has neither an input nor a record of the run.
var ErrUnknownRun = errors.New("dispatch: unknown run")

// Cancel requests that a run is cancelled, in three steps. The cancel record in the log makes the
// request durable, the signal lets the workflow decide, and the announcement over NATS stops
// activities at once. It returns when all three are sent, not when the run has ended. A run that
// has ended is left as it is. Errors: ErrUnknownRun.
func (d *Dispatcher) Cancel(ctx context.Context, run stream.Run, c stream.Cancel) error {
	hasRun, err := d.Log.HasRun(ctx, run)
	if err != nil {
		return err
	}
	if !hasRun {
		return ErrUnknownRun
	}
	ended, err := d.Log.HasEnded(ctx, run)
	if err != nil || ended {
		return err
	}
	if _, err := d.Log.RequestCancel(ctx, run, c); err != nil {
		return err
	}
	opening, err := d.Log.OpeningOf(ctx, run)
	if err != nil {
		return err
	}
	if opening != nil { // a run that has not begun has no workflow to signal: its first activity finds the record
		if err := d.signalCancel(ctx, run); err != nil {
			return err
		}
	}
	return d.Log.AnnounceCancel(run)
}

// signalCancel signals the thread's workflow. It does not use Temporal's cancellation, which names
// an execution: the run may have continued as new in another execution, or another run of the
// thread may be active. The signal names the run.
func (d *Dispatcher) signalCancel(ctx context.Context, run stream.Run) error {
	err := d.Temporal.SignalWorkflow(ctx, WorkflowID(run.Thread), "", runs.SignalCancel, runs.CancelRequest{RunID: run.ID})
	var notFound *serviceerror.NotFound
	if err != nil && !errors.As(err, &notFound) {
		return fmt.Errorf("dispatch: cancel: %w", err)
	}
	return nil
}

// recordCancel writes the cancel record and the announcement for a run that its workflow has
// cancelled already, in favor of the run whose input is the record input. No signal is necessary.
func (d *Dispatcher) recordCancel(ctx context.Context, run stream.Run, input uint64) error {
	in, err := d.Log.Input(ctx, input)
	if err != nil {
		return err
	}
	if _, err := d.Log.RequestCancel(ctx, run, stream.Cancel{Reason: "another run replaces it", By: in.Requester}); err != nil {
		return err
	}
	return d.Log.AnnounceCancel(run)
}
