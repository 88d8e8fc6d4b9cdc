package workflows

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// run is an AG-UI run in one execution: the run of a thread, or the work of a child (a subagent or
// a branch). It loops over turns, or executes a pipeline or a program. newRun makes it when an
// execution begins, or when the next run of the thread begins in the same execution; carry packs
// what the next execution needs to continue it.
//
// A run holds references to content (IDs, sequences of the log), and never content. Only coroutines
// of the workflow touch it, so it needs no lock.
type run struct {
	// in is the input of the run, with the agent, limits and policies of the last handoff. Its
	// Queue and Progress are nil: their contents are in the thread and in this struct.
	in runs.Input
	// execution is the Temporal run ID of the execution that began the AG-UI run, or would have
	// begun it (runs.Continuation.BegunBy). All records of the run carry it, also those of later
	// executions and of children: the log fences by it. Other runs may have the same, because an
	// execution may have several, one after the other.
	execution string
	turn      int                // number of the current turn, from 1; part of step IDs
	log       runs.LaneSequences // last sequences of the log that this run knows
	budget    runs.Budget        // deadline, usage, and what approvers allowed

	control    control
	delegation delegation
	interrupts interrupts
	pipeline   pipelineState
	thread     threadControl // the run's thread; nil = the run is a child's
	child      *child        // the subagent or branch; nil = the run is a thread's

	// program executes the agent's program. runTurns calls it if in.Program is set.
	program func(workflow.Context) ending
	// executionCtx is the root context of agent.run and agent.child. Temporal's cancellation of the
	// execution ends it; a cancel of the AG-UI run does not.
	executionCtx  workflow.Context
	answerMessage string // ID of the message with which the run or the pipeline's last agent ended
	// result is the sequence of the record that keeps the result of the run, or of the pipeline's last
	// agent; 0 = there is none. repairs counts the invalid answers that were sent back to the run's own
	// agent: a handoff begins a new count.
	result  uint64
	repairs int
}

// pipelineState is how far the steps of a run have come. The run owns it; the executor changes
// it. Of its fields, only the position goes to the next execution.
type pipelineState struct {
	position *runs.PipelinePosition // nil = the agent is no pipeline, or its program has no step under way
	// tree has the JSON of a program's step until an advance has written it to the log; nil
	// afterwards.
	tree []byte
}

// threadControl is the thread as its run sees it; *thread implements it. The run of a child has
// none: its interrupts go to the thread through the parent's children.
type threadControl interface {
	// pause blocks until the run is resumed or cancelled. The error is nil, or continues the thread
	// as parked.
	pause(ctx workflow.Context) error
	// stopDecisions stops decisions and tool results from being taken until allowDecisions, or
	// until the run has ended.
	stopDecisions(ctx workflow.Context)
	// allowDecisions takes decisions again: the children did not end after all, and the run
	// continues.
	allowDecisions(ctx workflow.Context)
	// closeSuspended forgets the interrupts of suspended children. interrupted reports that the run
	// has ended with them; otherwise they are cancelled.
	closeSuspended(ctx workflow.Context, interrupted bool)
	// cancel cancels the run, or its successor while the run is suspending.
	cancel()
	// awaitResults blocks until every tool result that has arrived is in the log. ok is false if
	// the run is cancelled.
	awaitResults(ctx workflow.Context) (ok bool)
	// detachNotifications starts child workflows for the pending notifications about resolved
	// interrupts, so that this execution need not carry them on.
	detachNotifications(ctx workflow.Context)
	// isNotifying reports whether a notification is being sent, or is to be sent next.
	isNotifying() bool
	// hasNewUpdate reports whether the current workflow task has accepted an update. The history has
	// it at the end of the task: a step that depends on it must not begin before.
	hasNewUpdate(ctx workflow.Context) bool
	// queued returns the inputs that wait for the thread, oldest first.
	queued() []runs.Input
	// isEnding reports whether the run's terminal record is written, or about to be.
	isEnding() bool
}

// control is what clients have requested of the active run, by updates (pause, resume, steer) and
// the signal cancel. Handlers set it; the run reads it between turns and steps.
type control struct {
	paused    bool          // the run blocks at its next safe point
	cancelled bool          // by a client, a schedule, or an input with onBusy: interrupt
	steering  runs.Steering // user messages for the next model call
}

// delegation counts the work that other agents do for the run, against the limits for it.
type delegation struct {
	subagents int // subagents started so far, with those that they started
	allowed   int // bound of subagents
	handoffs  int // how often the run handed its thread over
}

// newRun returns the run of an execution's input. With in.Progress it continues the run where the
// execution before this one left it. Otherwise the run begins, and takes over the budget of the run
// whose interrupts it resumes.
func newRun(ctx workflow.Context, in runs.Input) *run {
	r := &run{in: in, executionCtx: ctx, execution: cmp.Or(in.BegunBy, workflow.GetInfo(ctx).OriginalRunID), turn: 1}
	r.budget.Begin(in.Limits, workflow.Now(ctx))
	r.in.Queue, r.in.Progress = nil, nil
	if p := in.Progress; p != nil {
		r.execution, r.turn, r.control.paused = p.Execution, p.Turn, p.Paused
		r.log, r.budget, r.control.steering = p.LaneSequences, p.Budget, p.Steering
		r.interrupts.held, r.delegation.subagents, r.pipeline.position, r.delegation.handoffs, r.repairs = p.Held, p.Subagents, p.Position, p.Handoffs, p.Repairs
	} else {
		r.budget.Restart(in.Limits, in.Resume)
	}
	return r
}

// runTurns executes the agent until the run is over: its program, its pipeline, or turns of model
// and tools. The ending has the interrupts that the run ends with, if any. The error is nil except
// to continue as new, and the caller returns it from the workflow function.
func (r *run) runTurns(ctx workflow.Context) (ending, error) {
	if r.in.AnswersOnly {
		return successEnding, nil
	}
	if r.in.Program != "" {
		return r.program(ctx), nil
	}
	if r.restorePosition(); r.pipeline.position != nil {
		return r.executor().steps(ctx)
	}
	if end := r.applyResumed(ctx); end.isOver() {
		return end, nil
	}
	for ; ; r.turn++ {
		if r.interrupts.held == nil { // otherwise the execution was parked in the middle of a turn
			if end, err := r.beginTurn(ctx); end.isOver() || err != nil {
				return end, err
			}
		}
		for r.interrupts.held != nil {
			if end, err := r.continueHeld(ctx); end.isOver() || err != nil {
				return end, err
			}
		}
	}
}

// step returns the step of an activity that works for the active agent: that of the pipeline's
// active step, or the run's own. turn and id form the step ID, which is the same for every attempt
// and unique in the run. name is the name in STEP_STARTED; "" = clients see no step.
func (r *run) step(turn int, id, name string) runs.Step {
	s := r.ownStep(fmt.Sprintf("%d/%s", turn, id))
	s.Turn, s.Name = turn, r.stepName(name)
	if active := r.activeStep(); active != nil {
		s.Agent, s.Revision, s.PipelineStep = active.Agent, active.Revision, &active.PipelineStep
		s.ID = fmt.Sprintf("%s%s%s/%d/%s", r.child.prefix(), r.pipeline.position.Prefix(), active.PipelineStep.Path, turn, id)
	}
	return s
}

// ownStep returns a step of the run's own agent, outside of its pipeline's active step. The
// activity's record follows the last record of the main lane (After), and closes the step that is
// open there (Closes).
func (r *run) ownStep(id string) runs.Step {
	return runs.Step{
		Run: r.in.Run, Execution: r.execution, Agent: r.in.Agent, Revision: r.in.Revision,
		ID: r.child.prefix() + r.child.branchPrefix() + id, Closes: r.log.OpenStep, After: r.log.Main, Child: r.child.ref(), Compensates: r.isCompensating(),
	}
}

// isCompensating reports whether the run undoes finished steps: then a cancel does not stop it, and
// limits do not apply. A cancelled program counts as compensating, because it may undo things by
// itself; but not in a run that begins as cancelled, with a step that has to end.
func (r *run) isCompensating() bool {
	pos := r.pipeline.position
	undoesItself := r.in.Program != "" && r.isCancelled() && !r.in.Cancelled
	return pos != nil && (pos.End != nil || pos.TreePosition.Undoing != nil) || r.child != nil && r.child.Compensates || undoesItself
}

// isCancelled reports whether the whole run is cancelled, as opposed to the context of one step of
// a program.
func (r *run) isCancelled() bool { return r.control.cancelled || r.executionCtx.Err() != nil }

// activeStep returns the agent or call that the pipeline has reached; nil = the run has no
// pipeline, or its pipeline has branches or waits. The caller may change the counts in it.
func (r *run) activeStep() *runs.ActiveStep {
	if r.pipeline.position == nil {
		return nil
	}
	return r.pipeline.position.Active
}

// activeAgent returns the agent whose model, tools and limits apply now: that of the active step,
// or the run's own.
func (r *run) activeAgent() runs.AgentRef {
	if active := r.activeStep(); active != nil {
		return active.AgentRef
	}
	return runs.AgentRef{Agent: r.in.Agent, Revision: r.in.Revision, Limits: r.in.Limits}
}

// stepName returns the name of a step in STEP_STARTED. Within a pipeline it is prefixed with the
// names of the steps around it, as in "plan/model". "" stays "".
func (r *run) stepName(name string) string {
	if active := r.activeStep(); active != nil && name != "" {
		return active.PipelineStep.Name + "/" + name
	}
	return name
}

// inputBeginning returns the content of the run's first record.
func (r *run) inputBeginning() *runs.Beginning {
	return &runs.Beginning{Input: r.in.Input, Digest: r.in.Digest, Continues: r.in.Continues, Edits: r.in.Resume.HasEdits()}
}

// firstStepOpening returns what the first record of this run opens: the AG-UI run, or, in a
// subagent, the subagent of the returned call. Both are nil in a branch: its first advance opens it
// without further data.
func (r *run) firstStepOpening() (*runs.Beginning, *runs.ToolCall) {
	switch {
	case r.child != nil && r.child.BranchPath != "":
		return nil, nil
	case r.child != nil:
		return nil, &r.child.call
	}
	return r.inputBeginning(), nil
}

// resultOf returns the record of the run's result; 0 = a run that ends so has none.
func (r *run) resultOf(end ending) uint64 {
	if end.outcome == runs.OutcomeSuccess && end.interrupts == nil {
		return r.result
	}
	return 0
}

// finish writes the run's terminal record, also when the run is cancelled. A local activity writes
// it within the workflow task that decided the end, with one attempt of two seconds. If the local
// activity fails, for instance because NATS is unavailable, a regular activity retries without
// limit.
//
// The result is that of the first terminal record, whichever attempt wrote it. OutcomeFenced
// without an error means that another execution owns the run. Otherwise an error means that no
// terminal record is known.
func (r *run) finish(ctx workflow.Context, end ending) (runs.Result, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in := runs.FinishInput{
		Run: r.in.Run, Execution: r.execution, After: r.log.Main, Outcome: end.outcome, Code: end.code, Message: end.message, Detail: end.detail,
		Usage: r.budget.Usage, Beginning: *r.inputBeginning(), Agent: r.in.Agent, Revision: r.in.Revision, HandedOver: r.delegation.handoffs > 0,
		First: r.firstStepID(), Interrupts: end.interrupts, Steered: r.control.steering.Pending(), Answers: r.in.Resume != nil && r.in.Input > 0,
		Result: r.resultOf(end),
	}
	in.Unfinished = r.log.Unfinished
	in = runs.Copy(in) // decisions that arrive before all attempts have ended must not change the end
	var done runs.FinishResult
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 2 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	err := workflow.ExecuteLocalActivity(local, runs.ActivityFinish, in).Get(ctx, &done)
	if err != nil && !isType(err, runs.ErrorFenced) && !isType(err, runs.ErrorLogLost) {
		patient := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, Summary: "finish",
			RetryPolicy: retryPolicy(0),
		})
		err = workflow.ExecuteActivity(patient, runs.ActivityFinish, in).Get(ctx, &done)
	}
	if isType(err, runs.ErrorFenced) {
		return runs.Result{Outcome: runs.OutcomeFenced}, nil
	}
	end.interrupts.AdoptTimes(done.OpenedAt, done.Expires)
	return runs.Result{Outcome: done.Outcome, Code: done.Code, Seq: done.Seq}, err
}

// cancel cancels the run. In a child it only notes the cancel: Temporal cancels the child with its
// parent.
func (r *run) cancel() {
	if r.thread != nil {
		r.thread.cancel()
		return
	}
	r.control.cancelled = true
}
