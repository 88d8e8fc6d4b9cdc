package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// heartbeatTimeout is the last resort against a worker that dies: other means notice sooner. A
// heartbeat is a persisted write, so it is rare.
const heartbeatTimeout = 30 * time.Second

// stepAttempts bounds the attempts of a step. It is the last resort against a step that kills its
// worker each time. An activity whose step fails gives up sooner.
const stepAttempts = 100

// run is an AG-UI run in one execution: of a thread, or of a child. It loops over turns, or runs a
// pipeline or a program. It holds references to content, and no content. Only coroutines of the
// workflow touch it.
type run struct {
	in        runs.Input // as a handoff has changed it
	execution string     // the Temporal run ID under which the log knows the run
	turn      int        // from 1
	log       runs.Positions
	budget    runs.Budget

	control    control
	delegation delegation
	interrupts interrupts
	pipeline   pipelineState
	thread     host   // whose run this is; nil = a child's
	child      *child // nil = the thread's

	program       func(workflow.Context) ending // runs the agent's program, if the agent is one
	executionCtx  workflow.Context
	answerMessage string // the message with which the run or the pipeline's last agent ended
}

// pipelineState is how far the steps of a run have come.
type pipelineState struct {
	position *runs.Position // nil = the agent is no pipeline, or its program is between two steps
	// chained is the answer to the next advance, if the activity of the call before has made it.
	chained *runs.Advanced
	tree    []byte // the steps of a program's step, until an advance has written them down
}

// host is the thread as its run sees it. The run of a child has none: its interrupts go to the
// thread through the parent's children.
type host interface {
	// pause blocks until the run may continue or is cancelled. The error continues the thread as
	// parked.
	pause(ctx workflow.Context) error
	// suspend refuses decisions until resume, or until the run has ended.
	suspend(ctx workflow.Context)
	resume(ctx workflow.Context)
	// closeSuspended forgets the interrupts of suspended children; interrupted tells that the run
	// has ended with them.
	closeSuspended(ctx workflow.Context, interrupted bool)
	cancel()
	// awaitResults blocks until every tool result that has arrived is in the log. ok is false if
	// the run is cancelled.
	awaitResults(ctx workflow.Context) (ok bool)
	// handOverNotifications gives the notifications of the run's interrupts to workflows of their
	// own.
	handOverNotifications(ctx workflow.Context)
	// queued are the inputs that wait for the thread, oldest first.
	queued() []runs.Input
	// hasEnded reports whether the run's terminal record is written, or about to be.
	hasEnded() bool
}

// control is what clients have told the run while it is active.
type control struct {
	paused    bool
	cancelled bool // executionCtx does not end with this
	steering  runs.Steering
}

// delegation counts what other agents do for the run.
type delegation struct {
	subagents int // that were started, with those below them
	allowed   int // how many may be
	handoffs  int
}

// newRun continues the run where the execution before this one left it, or begins it.
func newRun(ctx workflow.Context, in runs.Input) *run {
	r := &run{in: in, executionCtx: ctx, execution: workflow.GetInfo(ctx).OriginalRunID, turn: 1}
	r.budget.Begin(in.Limits, workflow.Now(ctx))
	r.in.Queue, r.in.Progress = nil, nil
	if p := in.Progress; p != nil {
		r.execution, r.turn, r.control.paused = p.Execution, p.Turn, p.Paused
		r.log, r.budget, r.control.steering = p.Positions, p.Budget, p.Steering
		r.interrupts.held, r.delegation.subagents, r.pipeline.position, r.delegation.handoffs = p.Held, p.Subagents, p.Position, p.Handoffs
	} else {
		r.budget.Resume(in.Limits, in.Resume)
	}
	return r
}

// ending is how a run, a turn or a step ends.
type ending struct {
	outcome runs.Outcome
	waits   *runs.Interrupts // what it ends with
	code    string
	message string
	detail  uint64 // the record of the log that says more
	refused bool   // people did not let the run go on
	ofStep  bool   // it is a limit of a step's agent, and not of the run
}

// turns runs the agent until the run is over. The error is nil except to continue as new.
func (r *run) turns(ctx workflow.Context) (ending, error) {
	if r.in.AnswersOnly {
		return ending{outcome: runs.OutcomeSuccess}, nil
	}
	if r.in.Program != "" {
		return r.program(ctx), nil
	}
	if r.restorePosition(); r.pipeline.position != nil {
		return r.interpreter().steps(ctx)
	}
	if end, over := r.applyResumed(ctx); over {
		return end, nil
	}
	for ; ; r.turn++ {
		if r.interrupts.held == nil { // else it goes on in the middle of a turn
			if end, over, err := r.beginTurn(ctx); over || err != nil {
				return end, err
			}
		}
		for r.interrupts.held != nil {
			if end, over, err := r.continueHeld(ctx); over || err != nil {
				return end, err
			}
		}
	}
}

func (r *run) step(turn int, id, name string) runs.Step {
	s := r.ownStep(fmt.Sprintf("%d/%s", turn, id))
	s.Turn, s.Name = turn, r.stepName(name)
	if l := r.activeStep(); l != nil {
		s.Agent, s.Revision, s.Place = l.Agent, l.Revision, &l.Place
		s.ID = fmt.Sprintf("%s%s%s/%d/%s", r.child.prefix(), r.pipeline.position.Prefix(), l.Place.Path, turn, id)
	}
	return s
}

// ownStep returns a step of the run's own agent, outside of its pipeline.
func (r *run) ownStep(id string) runs.Step {
	return runs.Step{
		Run: r.in.Run, Execution: r.execution, Agent: r.in.Agent, Revision: r.in.Revision,
		ID: r.child.prefix() + r.child.branchPrefix() + id, Closes: r.log.OpenStep, After: r.log.Main, Child: r.child.branch(), Compensates: r.isCompensating(),
	}
}

// isCompensating reports whether the run undoes what it has done: then a cancel does not stop it.
func (r *run) isCompensating() bool {
	w := r.pipeline.position
	return w != nil && (w.End != nil || w.Cursor.Undoing != nil) || r.child != nil && r.child.Compensates || r.in.Program != "" && r.isCancelled()
}

// isCancelled reports whether the whole run is cancelled, as opposed to a part of it.
func (r *run) isCancelled() bool { return r.control.cancelled || r.executionCtx.Err() != nil }

// activeStep returns the agent or call that the pipeline has reached; nil = none.
func (r *run) activeStep() *runs.ActiveStep {
	if r.pipeline.position == nil {
		return nil
	}
	return r.pipeline.position.Active
}

// activeAgent returns the agent that speaks: that of the active step, or the run's own.
func (r *run) activeAgent() runs.AgentRef {
	if l := r.activeStep(); l != nil {
		return l.AgentRef
	}
	return runs.AgentRef{Agent: r.in.Agent, Revision: r.in.Revision, Limits: r.in.Limits}
}

// stepName returns the name that clients see of a step: after those of the pipeline's steps around
// it.
func (r *run) stepName(name string) string {
	if l := r.activeStep(); l != nil && name != "" {
		return l.Place.Name + "/" + name
	}
	return name
}

func (r *run) beginning() *runs.Beginning {
	return &runs.Beginning{Input: r.in.Input, Digest: r.in.Digest, Continues: r.in.Continues, Edits: r.in.Resume.HasEdits()}
}

// opening returns what the agent's first step opens: the run, or a subagent. Both are nil in a
// branch.
func (r *run) opening() (*runs.Beginning, *runs.ToolCall) {
	switch {
	case r.child != nil && r.child.BranchPath != "":
		return nil, nil
	case r.child != nil:
		return nil, &r.child.call
	}
	return r.beginning(), nil
}

// options bounds an activity by the time that is left, so that the deadline needs no timer. A
// cancelled activity is waited for: it closes what it opened, and reports what it recorded.
func (r *run) options(ctx workflow.Context, summary string) workflow.ActivityOptions {
	until := r.budget.Deadline
	if l := r.activeStep(); l != nil {
		until = runs.Earlier(l.Deadline, until)
	}
	left := max(until.Sub(workflow.Now(ctx)), time.Second)
	return workflow.ActivityOptions{
		ScheduleToCloseTimeout: left,
		StartToCloseTimeout:    left,
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second, MaximumAttempts: stepAttempts,
		},
	}
}

// failure turns an activity's error into the end of the run. Its message is never content: what the
// model or a tool said is in the log.
func (r *run) failure(ctx workflow.Context, err error) ending {
	var app *temporal.ApplicationError
	var timedOut *temporal.TimeoutError
	switch {
	case temporal.IsCanceledError(err) || ctx.Err() != nil:
		return ending{outcome: runs.OutcomeCancelled}
	case isDisturbed(err):
		return r.overdueEnding()
	case errors.As(err, &app): // if it is ErrorFenced, finish finds out whose the run is
		var detail runs.FailureDetail
		if app.HasDetails() {
			_ = app.Details(&detail) // those of other errors have no record
		}
		return ending{outcome: runs.OutcomeError, code: app.Type(), message: app.Message(), detail: detail.Record}
	case errors.As(err, &timedOut) && r.overdue(ctx):
		return r.durationEnding()
	case errors.As(err, &timedOut):
		return ending{outcome: runs.OutcomeError, code: timeout.Code, message: timeout.Message}
	default:
		return ending{outcome: runs.OutcomeError, code: runs.CodeInternal, message: "a step failed"}
	}
}

// why returns the ending as the failure of a step.
func (e ending) why() pipeline.Failure {
	return pipeline.Failure{Code: e.code, Message: e.message, Record: e.detail}
}

// failureEnding returns the ending of a run whose steps failed.
func failureEnding(f pipeline.Failure) ending {
	return ending{outcome: runs.OutcomeError, code: f.Code, message: f.Message, detail: f.Record}
}

func limit(code, format string, args ...any) ending {
	return ending{outcome: runs.OutcomeError, code: code, message: fmt.Sprintf(format, args...)}
}

// finish writes the terminal record, also when the run is cancelled. A local activity does it
// within the workflow task that decided. If that fails, since the log is out of reach, a regular
// activity retries as long as it takes.
func (r *run) finish(ctx workflow.Context, end ending) (runs.Result, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	in := runs.Finish{
		Run: r.in.Run, Execution: r.execution, After: r.log.Main, Outcome: end.outcome, Code: end.code, Message: end.message, Detail: end.detail,
		Usage: r.budget.Usage, Beginning: *r.beginning(), Agent: r.in.Agent, Revision: r.in.Revision, HandedOver: r.delegation.handoffs > 0,
		First: r.firstStepID(), Interrupts: end.waits, Steered: r.control.steering.Untold(), Answers: r.in.Resume != nil && r.in.Input > 0,
	}
	in.Unfinished = r.log.Unfinished
	var done runs.Finished
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 2 * time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	err := workflow.ExecuteLocalActivity(local, runs.ActivityFinish, in).Get(ctx, &done)
	if err != nil && !isType(err, runs.ErrorFenced) && !isType(err, runs.ErrorLogLost) {
		patient := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, Summary: "finish",
			RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
		})
		err = workflow.ExecuteActivity(patient, runs.ActivityFinish, in).Get(ctx, &done)
	}
	if isType(err, runs.ErrorFenced) {
		return runs.Result{Outcome: runs.OutcomeFenced}, nil
	}
	end.waits.AdoptTimes(done)
	return runs.Result{Outcome: done.Outcome, Code: done.Code, Seq: done.Seq}, err
}

// cancel cancels the run.
func (r *run) cancel() {
	if r.thread != nil {
		r.thread.cancel()
		return
	}
	r.control.cancelled = true
}

// resumeChildren is called when no child ends with interrupts: the run continues.
func (r *run) resumeChildren(ctx workflow.Context) {
	if r.thread != nil {
		r.thread.closeSuspended(ctx, false)
		r.thread.resume(ctx)
	}
}

func isType(err error, errorType string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == errorType
}
