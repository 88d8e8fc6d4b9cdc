package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Dispatcher starts, offers and cancels runs. It has no state but its two clients, which the caller
// owns and closes. It is safe for concurrent use.
type Dispatcher struct {
	Log      *stream.Log // nil = updates are not announced, in tests without a log
	Temporal client.Client
}

// MaxRounds bounds how often a caller of StartOrOffer loads a thread again: because the thread has
// changed meanwhile, or because its last run has ended in the log while its workflow has not closed
// yet. Each of these rounds waits for closeCheck, which is six seconds in all: longer than
// runs.WorkflowTaskTimeout, after which Temporal gives the task of a dead worker to another one.
const MaxRounds = 60

const (
	// closeCheck bounds one wait for an execution to close. Rarely, Temporal does not answer the
	// poll of a waiting client, so no wait relies on it.
	closeCheck = 100 * time.Millisecond
	// updateTimeout bounds how long Update waits for the workflow's answer.
	updateTimeout = 5 * time.Second
	// offerTimeout bounds how long an offer waits for the workflow's answer before the caller
	// loads the thread again.
	offerTimeout = 2 * time.Second
	// updateRetryPause is the pause before Update repeats an update that Temporal has dropped.
	updateRetryPause = 20 * time.Millisecond
)

// WorkflowID returns the workflow ID of a thread.
func WorkflowID(t stream.Thread) string {
	return "thread/" + stream.Token(t.Tenant) + "/" + stream.Token(t.ID)
}

// TitleWorkflowID returns the ID of the workflow that has a model write the title of a thread.
func TitleWorkflowID(t stream.Thread) string { return runs.TitleWorkflowID(WorkflowID(t)) }

// RunInput returns the workflow input of a run whose input p has been proposed. The caller may set
// further fields, such as Hold and ParkAfter.
func RunInput(run stream.Run, agent catalog.Published, p stream.Proposal) runs.Input {
	return runs.Input{
		Run: runs.Ref{Tenant: run.Tenant, Thread: run.Thread.ID, ID: run.ID},
		AgentRef: runs.AgentRef{
			Agent: agent.Name, Revision: agent.Revision, Limits: runs.LimitsOfRun(agent.Limits),
			Steps: len(agent.Steps) > 0, Program: agent.Workflow, HasResult: agent.Workflow != "" && agent.Output != nil,
		},
		Input: p.Seq, Digest: p.Digest,
		BeginsTitle: agent.TitleModel != "",
		OnNewInput:  runs.OpenPolicy(agent.OnNewInput), OnMissingResult: runs.OpenPolicy(agent.MissingToolResult()),
	}
}

// OfferTerms are the conditions of an offer to the workflow that occupies a thread.
type OfferTerms struct {
	// OnBusy is what happens to the run if another one is active.
	OnBusy runs.OnBusy
	// Decisions are the decisions in the run's input about the open interrupts of the thread.
	Decisions []runs.Decision
}

// StartOrOffer starts a run, or offers it to the workflow that occupies the thread. snap is the
// snapshot of the thread on which the caller has based the run's input.
//
// isStarted is true if the run was started, is active already (result.Attached), or is queued
// (result.Queued). It is false without an error if the caller must load the thread again, or if
// a quorum needs more approvals (result.Open): then the decisions were taken and the run was not.
// If the workflow refuses the run, the error is a *temporal.ApplicationError; Refusal returns its
// type. StartOrOffer blocks for some seconds at most.
func (d *Dispatcher) StartOrOffer(ctx context.Context, in runs.Input, terms OfferTerms, snap *snapshot.Snapshot) (result runs.SubmitResult, isStarted bool, err error) {
	run := stream.Run{Thread: stream.Thread{Tenant: in.Run.Tenant, ID: in.Run.Thread}, ID: in.Run.ID}
	// Another run may begin before this one: the activity checks that this one is the first.
	in.BeginsTitle = in.BeginsTitle && snap.Run == "" && snap.Origin == nil
	_, err = d.Temporal.ExecuteWorkflow(ctx, options(run, in.Agent), runs.TypeRun, in)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return result, true, nil
	case !errors.As(err, &running):
		return result, false, fmt.Errorf("dispatch: start workflow: %w", err)
	}
	return d.offerRun(ctx, run, in, terms, snap, running.RunId)
}

// options returns the options of a thread's workflow. The start fails if the thread has an open
// workflow (conflict policy FAIL), so the caller can offer the run to that one.
func options(run stream.Run, agent string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                                       WorkflowID(run.Thread),
		TaskQueue:                                runs.TaskQueue,
		WorkflowTaskTimeout:                      runs.WorkflowTaskTimeout,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		Priority:                                 runs.TenantPriority(stream.Token(run.Tenant)),
		TypedSearchAttributes: temporal.NewSearchAttributes(
			runs.AttributeTenant.ValueSet(stream.Token(run.Tenant)),
			runs.AttributeAgent.ValueSet(agent),
			runs.AttributeRun.ValueSet(stream.Token(run.ID)),
		),
	}
}

// offerRun offers the run to the execution that occupies the thread. If the log has the end of that
// execution's run, and no interrupts are open, the execution is about to close, so offerRun waits
// for that first. An execution that stays open answers the offer: it has a run that has not begun in
// the log yet, its first or one that follows in the same execution.
func (d *Dispatcher) offerRun(
	ctx context.Context, run stream.Run, in runs.Input, terms OfferTerms, snap *snapshot.Snapshot, execution string,
) (result runs.SubmitResult, isStarted bool, err error) {
	if snap.Sealed && snap.Execution == execution && len(snap.Interrupts)+len(snap.ClientCalls) == 0 {
		if d.awaitClose(ctx, run.Thread, execution) {
			return result, false, nil
		}
	}
	in.Token = stream.Token(run.ID)
	result, err = d.offerWithTimeout(ctx, run.Thread, runs.SubmitRequest{RunID: in.Run.ID, Digest: in.Digest, OnBusy: terms.OnBusy, Decisions: terms.Decisions, Offer: &in}, execution)
	if active, busy := BusyWith(err); busy && snap.Sealed && (active == snap.RunID || len(terms.Decisions) > 0) {
		// Either the active run has ended in the log and its worker died before the workflow
		// learned of it, or a concurrent request has decided the same interrupts and the log will
		// soon have its run. In both cases the caller loads the thread again.
		pause(ctx, closeCheck)
		return result, false, ctx.Err()
	}
	// The update timed out although ctx has not ended: offerTimeout has passed, or the execution
	// closed.
	_, silent := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	switch {
	case err != nil && (closedBeforeUpdate(err) || silent && ctx.Err() == nil):
		return result, false, nil
	case err != nil:
		return result, false, err
	case result.Closing:
		d.awaitClose(ctx, run.Thread, execution)
	case result.Interrupted != "":
		err = d.recordCancel(ctx, stream.Run{Thread: run.Thread, ID: result.Interrupted}, in.Input)
	}
	return result, result.Attached || result.Queued, err
}

// awaitClose waits up to closeCheck for an execution to close or to continue as new, and reports
// whether it has. An error of Temporal counts as closed: the caller then loads the thread again.
func (d *Dispatcher) awaitClose(ctx context.Context, thread stream.Thread, execution string) (closed bool) {
	ctx, cancel := context.WithTimeout(ctx, closeCheck)
	defer cancel()
	_ = d.Temporal.GetWorkflow(ctx, WorkflowID(thread), execution).GetWithOptions(ctx, nil, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
	return ctx.Err() == nil
}

// offerWithTimeout is Offer with offerTimeout, for an execution that may close before it takes the
// offer. Temporal does not answer an update whose execution continues as new or closes, so a
// goroutine polls for the close and then cancels the offer. offerWithTimeout waits for the
// goroutine before it returns.
func (d *Dispatcher) offerWithTimeout(ctx context.Context, thread stream.Thread, request runs.SubmitRequest, execution string) (runs.SubmitResult, error) {
	ctx, cancel := context.WithTimeout(ctx, offerTimeout)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		if pause(ctx, closeCheck); ctx.Err() != nil { // most offers are answered by then
			return
		}
		_ = d.Temporal.GetWorkflow(ctx, WorkflowID(thread), execution).GetWithOptions(ctx, nil, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
		pause(ctx, closeCheck) // the last task of the execution may have taken the offer
		cancel()
	})
	return d.Offer(ctx, thread, request, execution)
}

// Offer sends the update "submit" to an execution of a thread's workflow; "" is the latest
// execution.
func (d *Dispatcher) Offer(ctx context.Context, thread stream.Thread, request runs.SubmitRequest, execution string) (result runs.SubmitResult, err error) {
	err = d.Update(ctx, thread, execution, runs.UpdateSubmit, request, &result)
	return result, err
}

// Update sends an update to an execution of a thread's workflow ("" is the latest), and waits up to
// updateTimeout for its result, which it decodes into answer. If an event reaches the workflow at
// the moment in which it is about to close, Temporal repeats the last workflow task and drops the
// update with WorkflowNotReady. Update then sends it again: all updates of Perdure are idempotent. It
// does so, too, if the latest execution has accepted the update and then continued as new: the next one
// answers.
func (d *Dispatcher) Update(ctx context.Context, thread stream.Thread, execution, name string, arg, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	defer d.announceUpdate(ctx, thread)()
	for {
		handle, err := d.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: WorkflowID(thread), RunID: execution, UpdateName: name, Args: []any{arg},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(ctx, answer)
		}
		if dropped := (*serviceerror.WorkflowNotReady)(nil); !errors.As(err, &dropped) && !(execution == "" && hasClosed(err)) {
			return err
		}
		if pause(ctx, updateRetryPause); ctx.Err() != nil {
			return err
		}
	}
}

// hasClosed reports whether an execution has accepted an update, and closed or continued as new before it
// answered. The type is that of the failure in Temporal's server.
func hasClosed(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && app.Type() == "AcceptedUpdateCompletedWorkflow"
}

// announceInterval is the interval of the announcements of an update that waits. A model call that
// begins between two of them leaves its workflow task that much later.
const announceInterval = 50 * time.Millisecond

// announceUpdate announces an update to all workers, again and again until the returned function is
// called, which waits for the goroutine: Temporal does not deliver an update to a workflow while a
// task of it is under way, and a model call may take place within that task.
func (d *Dispatcher) announceUpdate(ctx context.Context, thread stream.Thread) (stop func()) {
	if d.Log == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			_ = d.Log.AnnounceUpdate(thread) // best effort: the call leaves the task soon in any case
			pause(ctx, announceInterval)
		}
	})
	return func() { cancel(); wait.Wait() }
}

// pause sleeps for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
