package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file has the activities of schedule.fire.v1, the workflow that Temporal starts at each time
// of a schedule. A firing starts a run, waits until the run is over, and may cancel it.

// Fire is schedule.run.v1: it starts the run of a firing, once. The ID of the run derives from the
// schedule and the nominal time, so a later attempt finds the run. A thread that refuses the run is
// a result (Fired.Refused). A schedule or agent that is gone is a final error.
func (a *Activities) Fire(ctx context.Context, in runs.FireInput) (out runs.FiredRun, err error) {
	defer recoverPanic(ctx, &err)
	out, err = a.fire(ctx, in)
	return out, failFiring(ctx, err)
}

// Error types of firings.
const (
	// errorScheduleGone: the revision that fired is not stored any more.
	errorScheduleGone = "schedule_gone"
	errorUnknownAgent = "unknown_agent"
)

// failFiring is fail with two more final errors: the schedule or its agent is gone.
func failFiring(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, schedules.ErrUnknown):
		return temporal.NewNonRetryableApplicationError("the schedule was deleted, or changed more than once, while it fired", errorScheduleGone, nil)
	case errors.Is(err, catalog.ErrUnknownAgent):
		return temporal.NewNonRetryableApplicationError("the schedule's agent is not published", errorUnknownAgent, nil)
	}
	return fail(ctx, err)
}

// fire reads the schedule as it was when Temporal started the firing, and starts its run.
func (a *Activities) fire(ctx context.Context, in runs.FireInput) (runs.FiredRun, error) {
	k, err := a.Schedules.At(ctx, in.Tenant, in.Schedule, in.Revision)
	if err != nil {
		return runs.FiredRun{}, err
	}
	run := k.RunAt(in.Tenant, in.At)
	out := runs.FiredRun{Run: runs.Ref{Tenant: run.Tenant, Thread: run.Thread.ID, ID: run.ID}}
	ctx = inRun(ctx, out.Run, k.Agent, "")
	agent, err := a.Agents.Latest(ctx, k.Agent)
	if err != nil {
		return out, err
	}
	out.Refused, out.AlreadyBegun, err = a.placeFired(ctx, k, run, agent, in)
	return out, err
}

// placeFired writes the input of the run as a proposal, and starts the run on its thread, or queues
// it if the schedule's onBusy says so. refused is why the thread does not take it; before tells
// that the run had begun. It tries up to dispatch.Rounds times, because the thread may change
// between reading it and placing the run; the error is then stream.ErrUnavailable, so Temporal
// retries.
func (a *Activities) placeFired(ctx context.Context, k *schedules.Stored, run stream.Run, agent catalog.Published, in runs.FireInput) (refused string, before bool, err error) {
	input, err := k.RunInput(run)
	if err != nil {
		return "", false, err
	}
	digest := input.Digest()
	for range dispatch.Rounds {
		// An earlier attempt may have started the run.
		if begun, err := a.Log.OpeningOf(ctx, run); begun != nil || err != nil {
			return "", begun != nil, err
		}
		thread, err := a.Snapshots.Latest(ctx, run.Thread, 0)
		if err != nil {
			return "", false, err
		}
		speaks, err := a.speaker(ctx, agent, thread)
		if err != nil {
			return "", false, err
		}
		said := *input
		// The acceptance has the messages, as those of an API input.
		said.Messages = nil
		proposal, err := a.Log.ProposeInput(ctx, run, digest, &stream.Input{
			Input: said, Accepted: thread.Accept(snapshot.Claim{Messages: input.Messages, History: snapshot.HistoryAppend}), Requester: k.Requester,
		})
		if err != nil {
			return "", false, err
		}
		// The run signals its end to the workflow that fired it (Fire).
		start := dispatch.RunInput(run, speaks, proposal)
		start.Trace = telemetry.TraceParent(ctx)
		start.ParkAfter, start.Fire, start.Hold = in.ParkAfter, in.Fire, holds(input.ForwardedProps)
		_, placed, err := a.Dispatch.StartOrOffer(ctx, start, dispatch.Terms{OnBusy: k.OnBusy}, thread)
		if refused := dispatch.Refusal(err); refused != "" {
			return refused, false, nil
		}
		if placed || err != nil {
			return "", false, err
		}
	}
	return "", false, fmt.Errorf("%w: the thread kept changing", stream.ErrUnavailable)
}

// speaker returns the agent that answers: the one that the schedule names, or the one to which
// that agent has handed the thread over.
func (a *Activities) speaker(ctx context.Context, named catalog.Published, thread *snapshot.Snapshot) (catalog.Published, error) {
	if name := thread.AnsweringAgent(named.Name); name != named.Name {
		return a.Agents.Latest(ctx, name)
	}
	return named, nil
}

// holds reports whether an input asks for a held run, with forwardedProps.perdure.hold. Invalid
// properties ask for nothing.
func holds(forwardedProps json.RawMessage) bool {
	var props struct {
		Perdure struct {
			Hold bool `json:"hold"`
		} `json:"perdure"`
	}
	return len(forwardedProps) > 0 && json.Unmarshal(forwardedProps, &props) == nil && props.Perdure.Hold
}

// CancelRun is schedule.cancel.v1: it cancels the run of a firing, or the run that continues it,
// and returns its status. It does not wait for the end of the run. The firing may not know its run
// yet (in.Fired is nil); a run that never began counts as ended.
func (a *Activities) CancelRun(ctx context.Context, in runs.FireInput) (out runs.RunStatus, err error) {
	defer recoverPanic(ctx, &err)
	var run stream.Run
	if in.Fired != nil {
		run = runOf(in.Fired.Run)
	} else {
		// The firing was cancelled before Fire returned. The ID of its run derives from the
		// schedule and the time.
		k, err := a.Schedules.At(ctx, in.Tenant, in.Schedule, in.Revision)
		if err != nil {
			return out, failFiring(ctx, err)
		}
		run = k.RunAt(in.Tenant, in.At)
	}
	ctx = inRun(ctx, runs.Ref{Tenant: run.Tenant, Thread: run.Thread.ID, ID: run.ID}, "", "")
	if err := a.cancelFired(ctx, run, "the schedule cancels the run"); err != nil {
		return out, fail(ctx, err)
	}
	out, err = a.standing(ctx, run)
	return out, fail(ctx, err)
}

// cancelFired requests the cancel of a run, or of the run that continues it. A run that the log
// does not know needs none.
func (a *Activities) cancelFired(ctx context.Context, run stream.Run, reason string) error {
	current, err := a.current(ctx, run)
	if err == nil {
		err = a.Dispatch.Cancel(ctx, current, stream.Cancel{Reason: reason})
	}
	if errors.Is(err, dispatch.ErrUnknownRun) {
		return nil
	}
	return err
}

// links bounds how many runs current follows.
const links = 100

// current returns the active run of the thread if it continues run, directly or over other runs;
// else run itself. A run that ended with interrupts is continued by another one, with an ID of its
// own.
func (a *Activities) current(ctx context.Context, run stream.Run) (stream.Run, error) {
	thread, err := a.Snapshots.Latest(ctx, run.Thread, 0)
	// Without an active run nothing continues run.
	if err != nil || thread.RunID == "" || thread.Sealed {
		return run, err
	}
	active := stream.Run{Thread: run.Thread, ID: thread.RunID}
	before := active
	// Follow the active run back to the one that it continues, and so on.
	for range links {
		if before == run {
			return active, nil
		}
		begun, err := a.Log.OpeningOf(ctx, before)
		if err != nil || begun == nil || begun.Continues == "" {
			return run, err
		}
		before.ID = begun.Continues
	}
	return run, nil
}

// RunStatus is schedule.status.v1: it returns the status of the run of a firing.
func (a *Activities) RunStatus(ctx context.Context, in runs.Ref) (out runs.RunStatus, err error) {
	ctx = inRun(ctx, in, "", "")
	defer recoverPanic(ctx, &err)
	out, err = a.standing(ctx, runOf(in))
	return out, fail(ctx, err)
}

// codeStopped is the code of a run whose workflow closed without a terminal record, for instance
// because an operator terminated it.
const codeStopped = "workflow_closed"

// standing returns the status of a run, by its terminal record and by the thread's workflow. A run
// that ended with interrupts is not over while the workflow is open: the thread waits for
// decisions, or continues with them.
func (a *Activities) standing(ctx context.Context, run stream.Run) (out runs.RunStatus, err error) {
	// Temporal is asked before the log: a workflow that closes in between has written its end.
	open, err := a.threadOpen(ctx, run.Thread)
	if err != nil {
		return out, err
	}
	end, err := a.Log.TerminalRecord(ctx, run)
	switch {
	case err != nil:
		return out, err
	case end == nil && open:
		return out, nil
	case end == nil:
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeError, Code: codeStopped}}, nil
	}
	how, err := end.RunEnding(ctx)
	if err != nil {
		return out, err
	}
	out.Outcome, out.Code, out.Over = runs.Outcome(how.Outcome), how.Code, true
	if open {
		thread, err := a.Snapshots.At(ctx, run.Thread, end.Seq)
		if err != nil {
			return out, err
		}
		out.Over = len(thread.Interrupts)+len(thread.ClientCalls) == 0
	}
	return out, nil
}

// threadOpen reports whether the thread's workflow is open. A workflow that Temporal does not know
// is closed.
func (a *Activities) threadOpen(ctx context.Context, t stream.Thread) (bool, error) {
	d, err := a.Dispatch.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(t), "")
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return false, nil
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}
