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
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file has the activities of schedule.fire.v1, the workflow that Temporal starts at each time
// of a schedule. A firing starts a run, waits until the run is over, and may cancel it.

// StartFiredRun is schedule.run.v1: it starts the run of a firing, once. The ID of the run derives
// from the schedule and the nominal time, so a later attempt finds the run. A thread that refuses
// the run is a result (FiredRun.Refused). A schedule or agent that is gone is a final error.
//
// The attempt that ends the firing's start writes the entry of the audit log, when the run has begun
// already. If that fails, Temporal retries the activity. So a firing has an entry, or rarely two.
func (a *Activities) StartFiredRun(ctx context.Context, in runs.FiringInput) (out runs.FiredRun, err error) {
	defer recoverPanic(ctx, &err)
	entry := audit.Entry{Action: audit.FireSchedule, Target: audit.Target{Schedule: in.Schedule}}
	out, err = a.fire(ctx, in, &entry)
	err = firingError(ctx, err)
	if recording := a.recordFiring(ctx, in.Tenant, entry, out, err); recording != nil {
		return out, activityError(ctx, recording)
	}
	return out, err
}

// recordFiring writes the entry of a firing to the audit log of its tenant: that the run has begun or
// is queued, or why not. It records no attempt that Temporal retries. Errors: stream.ErrUnavailable.
func (a *Activities) recordFiring(ctx context.Context, tenant string, entry audit.Entry, out runs.FiredRun, err error) error {
	entry.Outcome, entry.Code = audit.Accepted, out.Refused
	final, isApplication := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case a.Audit == nil, err != nil && (!isApplication || !final.NonRetryable()):
		return nil
	case err != nil:
		entry.Outcome, entry.Code = audit.Denied, final.Type()
	case out.Refused != "":
		entry.Outcome = audit.Denied
	}
	entry.Thread, entry.Run = out.Run.Thread, out.Run.ID
	if err := a.Audit.Record(ctx, store.OfTenant(tenant), entry); err != nil {
		return fmt.Errorf("%w: the firing is not recorded: %w", stream.ErrUnavailable, err)
	}
	return nil
}

// Error types of firings.
const (
	// errorScheduleGone: the revision that fired is not stored any more.
	errorScheduleGone = "schedule_gone"
	errorUnknownAgent = "unknown_agent"
	// errorUnknownService: the operator has not configured the service as which the schedule runs.
	errorUnknownService = "unknown_service"
)

// unknownServiceError tells that the operator has not configured a service.
type unknownServiceError struct{ tenant, subject string }

// Error implements error.
func (e *unknownServiceError) Error() string {
	return fmt.Sprintf("the services in the file of PERDURE_PRINCIPALS do not have %q of the tenant %q, as which the schedule runs", e.subject, e.tenant)
}

// firingError is activityError with more final errors: the schedule, its agent or its service is
// gone.
func firingError(ctx context.Context, err error) error {
	if unknown, ok := errors.AsType[*unknownServiceError](err); ok {
		return temporal.NewNonRetryableApplicationError(unknown.Error(), errorUnknownService, nil)
	}
	switch {
	case errors.Is(err, schedules.ErrUnknown):
		return temporal.NewNonRetryableApplicationError("the schedule was deleted, or changed more than once, while it fired", errorScheduleGone, nil)
	case errors.Is(err, catalog.ErrUnknownAgent):
		return temporal.NewNonRetryableApplicationError("the schedule's agent is not published", errorUnknownAgent, nil)
	}
	return activityError(ctx, err)
}

// fire reads the schedule as it was when Temporal started the firing, and starts its run. It sets the
// agent and the actor of the entry.
func (a *Activities) fire(ctx context.Context, in runs.FiringInput, entry *audit.Entry) (runs.FiredRun, error) {
	schedule, err := a.Schedules.At(ctx, in.Tenant, in.Schedule, in.Revision)
	if err != nil {
		return runs.FiredRun{}, err
	}
	run := schedule.RunAt(in.Tenant, in.At)
	out := runs.FiredRun{Run: runs.Ref{Tenant: run.Tenant, Thread: run.Thread.ID, ID: run.ID}}
	ctx, entry.Agent = inRun(ctx, out.Run, schedule.Agent, ""), schedule.Agent
	agent, err := a.Agents.Latest(ctx, in.Tenant, schedule.Agent)
	if err != nil {
		return out, err
	}
	actor, ok := schedule.Actor(in.Tenant, a.Principals)
	if !ok {
		return out, &unknownServiceError{in.Tenant, schedule.RunAs}
	}
	entry.Actor = audit.ActorOf(actor)
	out.Refused, out.AlreadyBegun, err = a.startFiredRun(ctx, &startedRun{schedule: schedule, actor: actor, run: run, agent: agent}, in)
	return out, err
}

// startedRun is a run that starts without a client: at a time of a schedule, or for an event.
type startedRun struct {
	// schedule describes how the run begins; for an event, triggeredRun makes it.
	schedule *schedules.Stored
	actor    auth.Principal // as which the run acts
	run      stream.Run
	agent    catalog.Published
	event    *stream.TriggerEvent // nil = the run is that of a schedule
}

// startFiredRun writes the input of a run without a client as a proposal, and starts the run on its
// thread, or queues it if the schedule's onBusy says so. refused is why the thread does not take it;
// alreadyBegun tells that the run had begun. It tries up to dispatch.MaxRounds times, because the
// thread may change between reading it and placing the run; the error is then
// stream.ErrUnavailable, so Temporal retries.
func (a *Activities) startFiredRun(ctx context.Context, started *startedRun, in runs.FiringInput) (refused string, alreadyBegun bool, err error) {
	schedule, actor, run := started.schedule, started.actor, started.run
	input, err := schedule.RunInput(run)
	if err != nil {
		return "", false, err
	}
	digest := input.Digest()
	for range dispatch.MaxRounds {
		// An earlier attempt may have started the run.
		if opening, err := a.Log.OpeningOf(ctx, run); opening != nil || err != nil {
			return "", opening != nil, err
		}
		snap, err := a.Snapshots.Latest(ctx, run.Thread, 0)
		if err != nil {
			return "", false, err
		}
		if err := a.mayFire(ctx, schedule, actor, run.Thread); policy.IsDenied(err) {
			return refusedForbidden, false, nil
		} else if err != nil {
			return "", false, err
		}
		answering, err := a.answeringAgent(ctx, in.Tenant, started.agent, snap)
		if err != nil {
			return "", false, err
		}
		if schedules.Refused(answering.Input, input) != "" {
			return refusedInput, false, nil
		}
		if exceeded, err := a.exceedsQuota(ctx, run, snap); exceeded || err != nil {
			return refusedQuota, false, err
		}
		inputCopy := *input
		// The acceptance has the messages, as those of an API input.
		inputCopy.Messages = nil
		propose := a.Log.ProposeInput
		if snap.Seq == 0 {
			propose = a.Log.ProposeFirstInput
		}
		proposal, err := propose(ctx, run, digest, &stream.Input{
			Input: inputCopy, Accepted: snap.Accept(snapshot.Claim{Messages: input.Messages, History: snapshot.HistoryAppend}), Requester: &actor, Event: started.event,
		})
		if errors.Is(err, stream.ErrThreadExists) {
			continue // another request has begun the thread
		}
		if err != nil {
			return "", false, err
		}
		// The run signals its end to the workflow that fired it (StartFiredRun).
		start := dispatch.RunInput(run, answering, proposal)
		start.Trace = telemetry.TraceParent(ctx)
		start.ParkAfter, start.FiringID, start.Hold = in.ParkAfter, in.FiringID, asksForHold(input.ForwardedProps)
		_, placed, err := a.Dispatch.StartOrOffer(ctx, start, dispatch.OfferTerms{OnBusy: schedule.OnBusy}, snap)
		if refused := dispatch.Refusal(err); refused != "" {
			return refused, false, nil
		}
		if placed || err != nil {
			return "", false, err
		}
	}
	return "", false, fmt.Errorf("%w: the thread kept changing", stream.ErrUnavailable)
}

// refusedForbidden is why a thread does not take a run whose actor may not send input to it, or whose
// schedule does not accept the owner of the thread.
const refusedForbidden = "forbidden"

// refusedInput is why a thread does not take a run whose agent does not accept the schedule's input
// from clients.
const refusedInput = "input_not_allowed"

// refusedQuota is why no run begins if the tenant of the schedule has reached a quota.
const refusedQuota = "quota_exceeded"

// exceedsQuota reports whether the tenant has reached a quota for a new run. A run that an earlier
// attempt may have started is accepted already. On a thread that is active or waits, the run begins
// no further concurrent one.
func (a *Activities) exceedsQuota(ctx context.Context, run stream.Run, snap *snapshot.Snapshot) (bool, error) {
	if a.Quotas == nil || len(snap.Interrupts)+len(snap.ClientCalls) > 0 || snap.RunID != "" && !snap.Sealed {
		return false, nil
	}
	if isAccepted, err := a.Log.HasRun(ctx, run); isAccepted || err != nil {
		return false, err
	}
	err := a.Quotas.Check(ctx, run.Tenant, quota.Runs, quota.Waiting)
	if _, isExceeded := errors.AsType[*quota.ExceededError](err); isExceeded {
		return true, nil
	}
	return false, err
}

// mayFire returns nil if the actor of a schedule may send input to the thread of a firing, or begin
// it. Otherwise the error is a *policy.DeniedError.
func (a *Activities) mayFire(ctx context.Context, schedule *schedules.Stored, actor auth.Principal, thread stream.Thread) error {
	access, err := a.Log.AccessOf(ctx, thread)
	switch {
	case err != nil:
		return err
	case access == nil && !schedule.MayBegin(actor), access != nil && !schedule.Accepts(access, actor):
		return &policy.DeniedError{Action: policy.RunThread, Rule: policy.RuleNone}
	case access == nil:
		err := a.Policies.Check(actor, policy.CreateThread, policy.Tenant(thread.Tenant), policy.Context{})
		if err != nil || schedule.ThreadID == "" {
			return err
		}
		access = &stream.Access{Owner: &actor.Subject} // as when the schedule was written
	}
	return a.Policies.Check(actor, policy.RunThread, policy.Thread(thread.Tenant, access), policy.Context{})
}

// answeringAgent returns the agent that answers: the one that the schedule names, or the one to
// which that agent has handed the thread over.
func (a *Activities) answeringAgent(ctx context.Context, tenant string, named catalog.Published, snap *snapshot.Snapshot) (catalog.Published, error) {
	if name := snap.AnsweringAgent(named.Name); name != named.Name {
		return a.Agents.Latest(ctx, snap.Handed.Referrer(tenant), name)
	}
	return named, nil
}

// asksForHold reports whether an input asks for a held run, with forwardedProps.perdure.hold.
// Invalid properties ask for nothing.
func asksForHold(forwardedProps json.RawMessage) bool {
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
func (a *Activities) CancelRun(ctx context.Context, in runs.FiringInput) (out runs.RunStatus, err error) {
	defer recoverPanic(ctx, &err)
	var run stream.Run
	if in.Fired != nil {
		run = runOf(in.Fired.Run)
	} else {
		// The firing was cancelled before StartFiredRun returned. The ID of its run derives from
		// the schedule and the time.
		schedule, err := a.Schedules.At(ctx, in.Tenant, in.Schedule, in.Revision)
		if err != nil {
			return out, firingError(ctx, err)
		}
		run = schedule.RunAt(in.Tenant, in.At)
	}
	ctx = inRun(ctx, runs.Ref{Tenant: run.Tenant, Thread: run.Thread.ID, ID: run.ID}, "", "")
	if err := a.cancelRun(ctx, run, "the schedule cancels the run"); err != nil {
		return out, activityError(ctx, err)
	}
	out, err = a.runStatus(ctx, run)
	return out, activityError(ctx, err)
}

// cancelRun requests the cancel of a run, or of the run that continues it. A run that the log
// does not know needs none.
func (a *Activities) cancelRun(ctx context.Context, run stream.Run, reason string) error {
	current, err := a.latestContinuation(ctx, run)
	if err == nil {
		err = a.Dispatch.Cancel(ctx, current, stream.Cancel{Reason: reason})
	}
	if errors.Is(err, dispatch.ErrUnknownRun) {
		return nil
	}
	return err
}

// maxContinuations bounds how many runs latestContinuation follows.
const maxContinuations = 100

// latestContinuation returns the active run of the thread if it continues fired, directly or over
// other runs; else fired itself. A run that ended with interrupts is continued by another one, with
// an ID of its own.
func (a *Activities) latestContinuation(ctx context.Context, fired stream.Run) (stream.Run, error) {
	snap, err := a.Snapshots.Latest(ctx, fired.Thread, 0)
	// Without an active run nothing continues fired.
	if err != nil || snap.RunID == "" || snap.Sealed {
		return fired, err
	}
	active := stream.Run{Thread: fired.Thread, ID: snap.RunID}
	run := active
	// Follow the active run back to the one that it continues, and so on.
	for range maxContinuations {
		if run == fired {
			return active, nil
		}
		opening, err := a.Log.OpeningOf(ctx, run)
		if err != nil || opening == nil || opening.Continues == "" {
			return fired, err
		}
		run.ID = opening.Continues
	}
	return fired, nil
}

// RunStatus is schedule.status.v1: it returns the status of the run of a firing.
func (a *Activities) RunStatus(ctx context.Context, in runs.Ref) (out runs.RunStatus, err error) {
	ctx = inRun(ctx, in, "", "")
	defer recoverPanic(ctx, &err)
	out, err = a.runStatus(ctx, runOf(in))
	return out, activityError(ctx, err)
}

// codeStopped is the code of a run whose workflow closed without a terminal record, for instance
// because an operator terminated it.
const codeStopped = "workflow_closed"

// runStatus returns the status of a run, by its terminal record and by the thread's workflow. A run
// that ended with interrupts is not over while the workflow is open: the thread waits for
// decisions, or continues with them.
func (a *Activities) runStatus(ctx context.Context, run stream.Run) (out runs.RunStatus, err error) {
	// Temporal is asked before the log: a workflow that closes in between has written its end.
	open, err := a.isThreadOpen(ctx, run.Thread)
	if err != nil {
		return out, err
	}
	terminal, err := a.Log.TerminalRecord(ctx, run)
	switch {
	case err != nil:
		return out, err
	case terminal == nil && open:
		return out, nil
	case terminal == nil:
		return runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeError, Code: codeStopped}}, nil
	}
	ending, err := terminal.RunEnding(ctx)
	if err != nil {
		return out, err
	}
	out.Outcome, out.Code, out.Over = runs.Outcome(ending.Outcome), ending.Code, true
	if open {
		snap, err := a.Snapshots.At(ctx, run.Thread, terminal.Seq)
		if err != nil {
			return out, err
		}
		out.Over = len(snap.Interrupts)+len(snap.ClientCalls) == 0
	}
	return out, nil
}

// isThreadOpen reports whether the thread's workflow is open. A workflow that Temporal does not
// know is closed.
func (a *Activities) isThreadOpen(ctx context.Context, t stream.Thread) (bool, error) {
	description, err := a.Dispatch.Temporal.DescribeWorkflowExecution(ctx, dispatch.WorkflowID(t), "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return false, nil
	}
	return description.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, err
}
