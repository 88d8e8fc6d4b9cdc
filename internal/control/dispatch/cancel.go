package dispatch

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// ErrUnknownRun: the log has nothing of a run.
var ErrUnknownRun = errors.New("dispatch: unknown run")

// Cancel cancels a run, on three ways in this order: the record, which nothing loses; Temporal,
// which decides; the announcement, which is fast. A run that is over is left as it is. Errors:
// ErrUnknownRun.
func (d *Dispatcher) Cancel(ctx context.Context, run stream.Run, c stream.Cancel) error {
	known, err := d.Log.Known(ctx, run)
	if err != nil {
		return err
	}
	if !known {
		return ErrUnknownRun
	}
	ended, err := d.Log.Ended(ctx, run)
	if err != nil || ended {
		return err
	}
	if _, err := d.Log.RequestCancel(ctx, run, c); err != nil {
		return err
	}
	begun, err := d.Log.Begun(ctx, run)
	if err != nil {
		return err
	}
	if begun != nil { // else the run's first activity finds the record
		if err := d.signalCancel(ctx, run); err != nil {
			return err
		}
	}
	return d.Log.AnnounceCancel(run)
}

// signalCancel tells the thread's workflow. It is a signal that names the run, and not Temporal's
// own cancellation: that names an execution, and a run may have continued in another one, or have
// made way for another run.
func (d *Dispatcher) signalCancel(ctx context.Context, run stream.Run) error {
	err := d.Temporal.SignalWorkflow(ctx, WorkflowID(run.Thread), "", runs.SignalCancel, runs.Cancel{RunID: run.ID})
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return fmt.Errorf("dispatch: cancel: %w", err)
	}
	return nil
}

// tellCancelled goes the first and the last way for a run that its workflow has cancelled already,
// for the run that another input asks for.
func (d *Dispatcher) tellCancelled(ctx context.Context, run stream.Run, input uint64) error {
	in, err := d.Log.Input(ctx, input)
	if err != nil {
		return err
	}
	if _, err := d.Log.RequestCancel(ctx, run, stream.Cancel{Reason: "another run takes its place", By: in.Requester}); err != nil {
		return err
	}
	return d.Log.AnnounceCancel(run)
}
