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

// Dispatcher knows the log and Temporal. It is safe for concurrent use.
type Dispatcher struct {
	Log      *stream.Log
	Temporal client.Client
}

// Rounds bounds how often a thread is looked at anew because it changed meanwhile, or because the
// run before has ended in the log and not yet closed in Temporal: six seconds of that, which is
// more than a workflow task may take whose worker died.
const Rounds = 60

const (
	// workflowTaskTimeout is how long a worker that died may hold a workflow task.
	workflowTaskTimeout = 5 * time.Second
	// closeCheck is how long to wait to be told that a run has closed: rarely, Temporal forgets to
	// tell.
	closeCheck = 100 * time.Millisecond
	// updatePatience is how long a workflow may take to answer.
	updatePatience = 5 * time.Second
	// offerPatience is how long it may take to answer an offer before the thread is looked at
	// again.
	offerPatience = 2 * time.Second
	// againAfter is when to send an update anew that Temporal has dropped.
	againAfter = 20 * time.Millisecond
)

// WorkflowID returns a thread's address in Temporal.
func WorkflowID(t stream.Thread) string {
	return "thread/" + stream.Token(t.Tenant) + "/" + stream.Token(t.ID)
}

// RunInput returns what the workflow of a run is told whose input has been proposed.
func RunInput(run stream.Run, agent catalog.Published, p stream.Proposal) runs.Input {
	return runs.Input{
		Run:   runs.Ref{Tenant: run.Tenant, Thread: run.Thread.ID, ID: run.ID},
		Agent: agent.Name, Revision: agent.Revision, Input: p.Seq, Digest: p.Digest,
		Limits: runs.LimitsOfRun(agent.Limits),
		Steps:  len(agent.Steps) > 0, Program: agent.Workflow,
		OnNewInput: runs.OpenPolicy(agent.OnNewInput), OnMissingResult: runs.OpenPolicy(agent.MissingToolResult()),
	}
}

// Terms are what a run is offered with to the workflow that occupies its thread.
type Terms struct {
	OnBusy runs.OnBusy
	// Decisions answer what the thread waits for.
	Decisions []runs.Decision
}

// Place starts a run whose thread has been found in this state, or offers it to the workflow that
// occupies the thread. placed is false, without an error, if the thread has to be looked at again,
// and if more people have to approve (Submitted.Open). A workflow's refusal is a
// *temporal.ApplicationError, of one of the types that workflows names.
func (d *Dispatcher) Place(ctx context.Context, in runs.Input, terms Terms, thread *snapshot.Snapshot) (taken runs.Submitted, placed bool, err error) {
	run := stream.Run{Thread: stream.Thread{Tenant: in.Run.Tenant, ID: in.Run.Thread}, ID: in.Run.ID}
	_, err = d.Temporal.ExecuteWorkflow(ctx, options(run, in.Agent), runs.TypeRun, in)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return taken, true, nil
	case !errors.As(err, &running):
		return taken, false, fmt.Errorf("dispatch: start workflow: %w", err)
	}
	return d.submit(ctx, run, in, terms, thread, running.RunId)
}

func options(run stream.Run, agent string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                                       WorkflowID(run.Thread),
		TaskQueue:                                runs.TaskQueue,
		WorkflowTaskTimeout:                      workflowTaskTimeout,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			runs.AttributeTenant.ValueSet(stream.Token(run.Tenant)),
			runs.AttributeAgent.ValueSet(agent),
			runs.AttributeRun.ValueSet(stream.Token(run.ID)),
		),
	}
}

// submit offers the run to the workflow that occupies the thread. If the log says that its run has
// ended, the workflow is about to close and only has to be waited for. (It may also be the one of a
// run that has begun in Temporal and not yet in the log; that one answers.)
func (d *Dispatcher) submit(ctx context.Context, run stream.Run, in runs.Input, terms Terms, thread *snapshot.Snapshot, execution string) (taken runs.Submitted, placed bool, err error) {
	if thread.Sealed && thread.Execution == execution && len(thread.Interrupts)+len(thread.ClientCalls) == 0 {
		d.awaitClose(ctx, run.Thread, execution)
		return taken, false, nil
	}
	in.Token = stream.Token(run.ID)
	taken, err = d.offer(ctx, run.Thread, runs.Submit{RunID: in.Run.ID, Digest: in.Digest, OnBusy: terms.OnBusy, Decisions: terms.Decisions, Offer: &in}, execution)
	if active, busy := BusyWith(err); busy && thread.Sealed && (active == thread.RunID || len(terms.Decisions) > 0) {
		// Its worker died when it had ended in the log, and the workflow is about to find out; or
		// somebody else has answered what is answered here, and the log is about to tell.
		pause(ctx, closeCheck)
		return taken, false, ctx.Err()
	}
	_, silent := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	switch {
	case err != nil && (over(err) || silent && ctx.Err() == nil):
		return taken, false, nil
	case err != nil:
		return taken, false, err
	case taken.Closing:
		d.awaitClose(ctx, run.Thread, execution)
	case taken.Interrupted != "":
		err = d.tellCancelled(ctx, stream.Run{Thread: run.Thread, ID: taken.Interrupted}, in.Input)
	}
	return taken, taken.Attached || taken.Queued, err
}

// awaitClose waits a moment for an execution to close; how is its own matter.
func (d *Dispatcher) awaitClose(ctx context.Context, thread stream.Thread, execution string) {
	ctx, cancel := context.WithTimeout(ctx, closeCheck)
	defer cancel()
	_ = d.Temporal.GetWorkflow(ctx, WorkflowID(thread), execution).Get(ctx, nil)
}

// offer is Offer to an execution that may close before it takes the offer, for another one to
// continue the thread. Temporal does not answer such an update, so the offer ends when the
// execution has closed.
func (d *Dispatcher) offer(ctx context.Context, thread stream.Thread, submit runs.Submit, execution string) (runs.Submitted, error) {
	ctx, cancel := context.WithTimeout(ctx, offerPatience)
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
	return d.Offer(ctx, thread, submit, execution)
}

// Offer offers a run to an execution of a thread's workflow; "" is the latest.
func (d *Dispatcher) Offer(ctx context.Context, thread stream.Thread, submit runs.Submit, execution string) (taken runs.Submitted, err error) {
	err = d.Update(ctx, thread, execution, runs.UpdateSubmit, submit, &taken)
	return taken, err
}

// Update sends an update to an execution of a thread's workflow, "" is the latest, and waits until
// that has decided. Where something comes to the workflow in the moment in which it is about to
// close, Temporal has it do its last task once more and drops the update, which is sent anew: all
// updates of this project may be.
func (d *Dispatcher) Update(ctx context.Context, thread stream.Thread, execution, name string, arg, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, updatePatience)
	defer cancel()
	for {
		handle, err := d.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: WorkflowID(thread), RunID: execution, UpdateName: name, Args: []any{arg},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			return handle.Get(ctx, answer)
		}
		if dropped := (*serviceerror.WorkflowNotReady)(nil); !errors.As(err, &dropped) {
			return err
		}
		if pause(ctx, againAfter); ctx.Err() != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
