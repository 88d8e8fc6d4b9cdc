package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// offer is a run that a client wants to see: to be started, or found running.
type offer struct {
	run    stream.Run
	input  *agui.RunAgentInput
	digest [32]byte
	agent  catalog.Published
	props  props
	view   *stream.View
	// steered is set when the thread was busy and what the input says was told to its active run.
	steered *steered
}

// offer makes an offer of an input. Its view must be closed; it comes first, so that what the run
// writes from its first moment on goes to it.
func (s *Server) offer(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput) (*offer, error) {
	thread, err := threadIn(ctx, input.ThreadID)
	if err != nil {
		return nil, err
	}
	wanted, err := propsOf(input)
	if err != nil {
		return nil, err
	}
	s.strip(input)
	run := stream.Run{Thread: thread, ID: input.RunID}
	view := s.Follower.View(run, stream.ViewOptions{Profile: stream.ProfileOf(input.ProtocolVersion)})
	return &offer{run: run, input: input, digest: input.Digest(), agent: agent, props: wanted, view: view}, nil
}

// told bounds how many of an input's oddities are logged, and maxPointer how long each may be.
const (
	told       = 5
	maxPointer = 100
)

// strip takes out of an input what this version does not know: that makes no input invalid.
func (s *Server) strip(input *agui.RunAgentInput) {
	warnings := agui.StripInput(input)
	if len(warnings) == 0 {
		return
	}
	var at []string
	for _, w := range warnings[:min(told, len(warnings))] {
		at = append(at, w.Pointer[:min(maxPointer, len(w.Pointer))])
	}
	s.logger.Warn("an input has what this server does not know; it goes on without", "thread", input.ThreadID, "run", input.RunID, "count", len(warnings), "at", at)
}

// rounds bounds how often an offer is looked at anew because the thread changed meanwhile, or because
// the run before it has ended in the log and not yet closed in Temporal: six seconds of that, which is
// more than a workflow task may take whose worker died.
const rounds = 60

// place finds out what an offer is, and starts the run if it is new. The log decides who a run is,
// Temporal only that one at a time is alive on a thread.
func (s *Server) place(ctx context.Context, o *offer) error {
	for range rounds {
		thread, err := s.Log.Reduce(ctx, o.run.Thread, 0)
		if err != nil {
			return err
		}
		if thread.Seq == 0 {
			o.view.SkipPast()
		} else if attached, err := s.attach(ctx, o); attached || err != nil {
			return err
		}
		placed, err := s.start(ctx, o, thread)
		if placed || err != nil {
			return err
		}
	}
	return fmt.Errorf("api: thread %q did not come to rest", o.run.Thread.ID)
}

// start writes the input down and starts the workflow. It reports false if the thread has to be
// looked at again.
func (s *Server) start(ctx context.Context, o *offer, thread *stream.Reduction) (bool, error) {
	decisions, err := s.resumed(ctx, o, thread)
	if err != nil {
		return false, err
	}
	input, history := *o.input, o.props.History
	input.Messages = nil
	if len(decisions) > 0 && len(thread.Interrupts) > 0 && history == stream.HistoryMerge {
		history = stream.HistoryAppend // who answers does not ask for another answer
	}
	said := withoutAnswers(o.input.Messages, thread, history)
	late := answersLate(o.input, thread)
	if late {
		history, o.props.OnBusy = stream.HistoryAppend, workflows.OnBusyEnqueue // it waits for what goes on
	}
	accepted := thread.Accept(said, history)
	accepted.Differs = accepted.Differs || len(said) < len(o.input.Messages)
	asker, err := s.asker(ctx, thread, len(decisions) > 0 && len(accepted.Tail) == 0)
	if err != nil {
		return false, err
	}
	proposal, err := s.Log.ProposeInput(ctx, o.run, o.digest, &stream.Input{Input: input, Accepted: accepted, Requester: asker})
	if err != nil {
		return false, err
	}
	in := s.runInput(o, proposal)
	in.Late = late && len(accepted.Tail) == 0
	_, err = s.Temporal.ExecuteWorkflow(ctx, s.workflowOptions(o), workflows.TypeRun, in)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &running):
		return s.submit(ctx, o, in, decisions, thread, running.RunId)
	default:
		return false, fmt.Errorf("api: start workflow: %w", err)
	}
}

// asker is who asks for a run. Who only answers what another run has asked asks for nothing: what goes on is
// still asked for by whoever began it, and they are not to approve it because somebody else has answered once.
func (s *Server) asker(ctx context.Context, thread *stream.Reduction, answers bool) (*auth.Principal, error) {
	if !answers || thread.Input == 0 {
		return requester(ctx), nil
	}
	before, err := s.Log.Input(ctx, thread.Input)
	if err != nil {
		return nil, err
	}
	return before.Requester, nil
}

// runInput is what the workflow is told.
func (s *Server) runInput(o *offer, p stream.Proposal) workflows.RunInput {
	return workflows.RunInput{
		Run:   workflows.Run{Tenant: o.run.Tenant, Thread: o.run.Thread.ID, ID: o.run.ID},
		Agent: o.agent.Name, Revision: o.agent.Revision, Input: p.Seq, Digest: p.Digest,
		Limits: workflows.Limits{
			Turns: o.agent.Limits.Turns, Tokens: o.agent.Limits.Tokens,
			Duration: o.agent.Limits.Duration, ParallelTools: o.agent.Limits.ParallelTools,
		},
		Steps: len(o.agent.Steps) > 0, Program: o.agent.Workflow, ParkAfter: s.ParkAfter, Hold: o.props.Hold,
		OnNewInput: workflows.OnOpen(o.agent.OnNewInput), OnMissing: workflows.OnOpen(o.agent.MissingToolResult()),
	}
}

// workflowTaskTimeout is how long a worker that died may hold a workflow task.
const workflowTaskTimeout = 5 * time.Second

func (s *Server) workflowOptions(o *offer) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                                       workflowID(o.run.Thread),
		TaskQueue:                                workflows.TaskQueue,
		WorkflowTaskTimeout:                      workflowTaskTimeout,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.AttributeTenant.ValueSet(stream.Token(o.run.Tenant)),
			workflows.AttributeAgent.ValueSet(o.agent.Name),
			workflows.AttributeRun.ValueSet(stream.Token(o.run.ID)),
		),
	}
}

// workflowID is a thread's address in Temporal.
func workflowID(t stream.Thread) string {
	return "thread/" + stream.Token(t.Tenant) + "/" + stream.Token(t.ID)
}

// closeCheck is how long to wait to be told that a run has closed: rarely, Temporal forgets to tell.
// submitPatience is how long a workflow may take to answer.
const (
	closeCheck     = 100 * time.Millisecond
	submitPatience = 5 * time.Second
)

// submit offers the run to the workflow that occupies the thread. If the log says that its run has
// ended, the workflow is about to close and only has to be waited for. (It may also be the one of a
// run that has begun in Temporal and not yet in the log; that one answers.)
func (s *Server) submit(ctx context.Context, o *offer, in workflows.RunInput, decisions []workflows.Decision, thread *stream.Reduction, execution string) (bool, error) {
	if thread.Sealed && thread.Execution == execution && len(thread.Interrupts)+len(thread.Waits) == 0 {
		s.awaitClose(ctx, o.run.Thread, execution)
		return false, nil
	}
	in.Token = stream.Token(o.run.ID)
	taken, err := s.offerTo(ctx, o.run.Thread, workflows.Submit{RunID: in.Run.ID, Digest: in.Digest, OnBusy: o.props.OnBusy, Decisions: decisions, Offer: &in}, execution)
	if active, busy := busyWith(err); busy && thread.Sealed && active == thread.RunID {
		// Its worker died when it had ended in the log: the workflow is about to find out.
		wait, cancel := context.WithTimeout(ctx, closeCheck)
		defer cancel()
		<-wait.Done()
		return false, ctx.Err()
	}
	if active, busy := busyWith(err); busy && o.props.OnBusy == workflows.OnBusySteer {
		return s.steerInstead(ctx, o, in.Input, stream.Run{Thread: o.run.Thread, ID: active})
	}
	if err != nil {
		return false, refusedBy(err)
	}
	if taken.Closing {
		s.awaitClose(ctx, o.run.Thread, execution)
		return false, nil
	}
	if taken.Open {
		return false, stillOpen(thread.RunID)
	}
	if taken.Interrupted != "" {
		err = s.tellCancelled(ctx, stream.Run{Thread: o.run.Thread, ID: taken.Interrupted}, "another run takes its place")
	}
	return taken.Attached || taken.Queued, err
}

// awaitClose waits a moment for an execution to close; how is its own matter.
func (s *Server) awaitClose(ctx context.Context, thread stream.Thread, execution string) {
	ctx, cancel := context.WithTimeout(ctx, closeCheck)
	defer cancel()
	_ = s.Temporal.GetWorkflow(ctx, workflowID(thread), execution).Get(ctx, nil)
}

// steerInstead tells the active run what the input says. That run may end meanwhile: then the thread is
// looked at again.
func (s *Server) steerInstead(ctx context.Context, o *offer, input uint64, active stream.Run) (bool, error) {
	answer, err := s.tellRun(ctx, active, stream.Proposal{Seq: input})
	var p *Problem
	if errors.As(err, &p) && p.Code == "not_active" {
		return false, nil
	}
	o.steered = &answer
	return true, err
}

// offerTo offers a run to an execution of a thread's workflow; "" is the latest.
func (s *Server) offerTo(ctx context.Context, thread stream.Thread, submit workflows.Submit, execution string) (taken workflows.Submitted, err error) {
	ctx, cancel := context.WithTimeout(ctx, submitPatience)
	defer cancel()
	handle, err := s.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: workflowID(thread), RunID: execution, UpdateName: workflows.UpdateSubmit,
		Args:         []any{submit},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, &taken)
	}
	return taken, err
}

// interruptedBy refuses an input that leaves questions open: nobody gives them up by not answering.
func interruptedBy(app *temporal.ApplicationError) error {
	var active workflows.Active
	if err := app.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem(http.StatusConflict, "interrupted", "the thread waits for decisions: answer all of its interrupts in resume, with status cancelled those that you give up")
	p.ActiveRun = active.RunID
	return p
}

// missingResults refuses an input that leaves out results which its agent insists on.
func missingResults(app *temporal.ApplicationError) error {
	var active workflows.Active
	if err := app.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem(http.StatusConflict, "missing_tool_results", "the thread waits for results of the client's tool calls: send a tool message for each, or post them to tool-results")
	p.ActiveRun, p.PendingToolCallIDs = stream.ShownRunID(active.RunID), active.Waiting
	return p
}

// stillOpen refuses an input whose answers were taken and are not enough.
func stillOpen(asking string) error {
	p := problem(http.StatusConflict, "interrupted", "what the input decides counts, and more people have to approve; when they have, the thread goes on by itself")
	p.ActiveRun, p.Counted = asking, true
	return p
}

// busyWith tells whether a workflow refuses an offer because another run is active, and which.
func busyWith(err error) (active string, busy bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != workflows.ErrorBusy {
		return "", false
	}
	var detail workflows.Active
	err = app.Details(&detail)
	return detail.RunID, err == nil
}

// refusedBy tells what a workflow's refusal means; nil = look at the thread again.
func refusedBy(err error) error {
	if active, busy := busyWith(err); busy {
		p := problem(http.StatusConflict, "busy", "another run of this thread is active")
		p.ActiveRun = active
		return p
	}
	var app *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &app) && app.Type() == workflows.ErrorInterrupted:
		return interruptedBy(app)
	case errors.As(err, &app) && app.Type() == workflows.ErrorMissingResults:
		return missingResults(app)
	case errors.As(err, &app) && app.Type() == workflows.ErrorRunIDReused:
		return problem(http.StatusConflict, "run_id_reused", "the run has begun with another input")
	case errors.As(err, &app) && app.Type() == workflows.ErrorQueueFull:
		return problem(http.StatusTooManyRequests, "queue_full", "too many runs wait for this thread")
	case errors.As(err, &gone), errors.As(err, &app):
		return nil // it closed meanwhile
	}
	return fmt.Errorf("api: submit: %w", err)
}
