package silence

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// A run is lost if its workflow closes before it writes the run's first record: the workflow was
// terminated while no worker was available, or no worker can execute it. The log then has only the
// proposed input of the run. It has the same content
//
//   - while the client's POST is between the proposal and the start of the workflow,
//   - if the POST never started the workflow: the client will repeat it, and that starts the run,
//   - while the run is queued in its thread.
//
// The log cannot tell these cases apart, but Temporal's history can: a run is lost if an execution
// that has closed had taken it, that is, began with it, had it in its queue, or accepted it. Only
// such a run is begun and ended here.

// silencesBeforeLost is how many silences pass before a run without a first record is checked.
// Starting a run may take a moment, a queued run is silent too, and the check reads a whole
// history.
const silencesBeforeLost = 6

// checkLost begins and ends a run whose workflow has closed before the run's first record. It does
// nothing if the workflow is open or unknown, or had not taken the run. The first record is fenced:
// if a worker has begun the run meanwhile, checkLost writes nothing, and a worker that begins it
// later finds that it has ended.
func (w *Watcher) checkLost(ctx context.Context, run stream.Run) error {
	description, err := w.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(run.Thread), "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: describe workflow: %w", err)
	}
	status := closeStatuses[description.GetWorkflowExecutionInfo().GetStatus()]
	if status == "" {
		return nil
	}
	execution := description.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	input, err := w.inputOf(ctx, run, execution)
	if err != nil || input == nil {
		return err
	}
	place := silencePlace(run, execution)
	_, err = w.Finder.Snapshots.OpenFailedRun(ctx, place, stream.Opening{Agent: input.Agent, Revision: input.Revision, Input: input.Input, Digest: input.Digest})
	// Another writer has begun the run, so it is not lost.
	if errors.Is(err, stream.ErrFenced) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("api: begin run %q: %w", run.ID, err)
	}
	return w.endRun(ctx, place, status)
}

// inputOf returns the run as the execution had taken it, from the execution's history; nil = the
// execution had not taken it. It reads the history event by event, up to the one with the run.
func (w *Watcher) inputOf(ctx context.Context, run stream.Run, execution string) (*runs.Input, error) {
	events := w.Temporal.GetWorkflowHistory(ctx, dispatch.WorkflowID(run.Thread), execution, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("api: read history: %w", err)
		}
		inputs, err := inputsIn(e)
		if err != nil {
			return nil, fmt.Errorf("api: read history, event %d: %w", e.GetEventId(), err)
		}
		for _, in := range inputs {
			if in.Run.ID == run.ID {
				return &in, nil
			}
		}
	}
	return nil, nil
}

// inputsIn returns the runs that an execution takes with one event of its history: at its start,
// the run and its queue; with an accepted submit update, the offered run. Other events have none.
func inputsIn(e *historypb.HistoryEvent) ([]runs.Input, error) {
	if started := e.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		var parked runs.ParkedInput
		var target any = &parked.Run
		if started.GetWorkflowType().GetName() == runs.TypeParked {
			target = &parked
		}
		err := runs.DataConverter().FromPayloads(started.GetInput(), target)
		return append([]runs.Input{parked.Run}, parked.Run.Queue...), err
	}
	accepted := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput()
	if accepted.GetName() != runs.UpdateSubmit {
		return nil, nil
	}
	var in runs.SubmitRequest
	if err := runs.DataConverter().FromPayloads(accepted.GetArgs(), &in); err != nil || in.Offer == nil {
		return nil, err
	}
	return []runs.Input{*in.Offer}, nil
}
