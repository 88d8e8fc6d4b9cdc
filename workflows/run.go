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

// heartbeatTimeout is the last resort against a worker that dies: other means notice sooner. A heartbeat is a persisted write, so
// it is rare.
const heartbeatTimeout = 30 * time.Second

// stepAttempts bounds the attempts of a step. It is the last resort against a step that kills its worker each time. An activity
// whose step fails gives up sooner.
const stepAttempts = 100

// run is an AG-UI run in one execution: of a thread, or of a child. It loops over turns, or runs a pipeline or a program. It
// holds references to content, and no content. Only coroutines of the workflow touch it.
type run struct {
	in        runs.Input // as a handoff has changed it
	execution string     // the Temporal run ID under which the log knows the run
	turn      int        // from 1
	log       runs.Positions
	budget    runs.Budget

	control    control
	delegation delegation
	interrupts interrupts
	pipeline   interpreter
	thread     *thread // whose run this is; nil = a child's
	child      *child  // nil = the thread's

	programs      Programs
	executionCtx  workflow.Context
	answerMessage string // the message with which the run or the pipeline's last agent ended
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
	r.pipeline.run = r
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
		return r.pipeline.steps(ctx)
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

func (r *run) beginTurn(ctx workflow.Context) (end ending, over bool, err error) {
	if r.budget.Spent.Turns >= r.in.Limits.Turns {
		return limit(runs.CodeLimitTurns, "the run reached its limit of %d turns", r.in.Limits.Turns), true, nil
	}
	if err := r.safePoint(ctx); err != nil {
		return ending{}, false, err
	}
	if end, over = r.checkSoftLimits(ctx); !over && r.interrupts.held == nil {
		end, over = r.takeTurn(ctx)
	}
	return end, over, nil
}

// takeTurn calls the model, and makes the tool calls that are no interrupts. over tells that the run ends.
func (r *run) takeTurn(ctx workflow.Context) (end ending, over bool) {
	r.budget.Spent.Turns++
	answer, err := r.callModel(ctx)
	if err != nil {
		return r.failure(ctx, err), true
	}
	r.log.Main, r.log.OpenStep = answer.Seq, r.stepName(stepModel)
	r.use(answer.Usage)
	switch {
	case answer.Exceeded != nil:
		return r.interruptForBudget(ctx, *answer.Exceeded)
	case answer.Outcome == runs.OutcomeCancelled || ctx.Err() != nil && !r.isDoneDespiteCancel(answer.Count()):
		return ending{outcome: runs.OutcomeCancelled}, true
	case answer.Count() == 0 && len(r.control.steering.Untold()) == 0:
		r.answerMessage = answer.MessageID
		return ending{outcome: runs.OutcomeSuccess}, true
	}
	if end, over = r.checkLimits(); over {
		return end, true
	}
	if answer.Count() == 0 {
		return ending{}, false // somebody said something while the model spoke: it is asked again
	}
	return r.makeCalls(ctx, answer)
}

// makeCalls makes the calls of a turn: those that are no interrupts, and then the one that hands the thread over. over tells
// that the run ends.
func (r *run) makeCalls(ctx workflow.Context, answer runs.ModelAnswer) (end ending, over bool) {
	waits, most := r.waitsOf(ctx, answer), r.activeAgent().Limits.ParallelTools
	if answer.Count() > most || answer.WaitCount > len(waits.Calls) || answer.OrderedCount > answer.Ordered() || answer.WaitCount > 0 && !r.holdIfFits(waits) {
		return limit(runs.CodeLimitParallelTools, "the model asked for more than %d tool calls at once", most), true
	}
	calls := toolCalls{messageID: answer.MessageID, calls: freeCalls(answer), step: r.step(r.turn, stepTools, stepTools)}
	if end, over = r.callTools(ctx, calls, waits); over {
		return end, true
	}
	if end, over = r.callHandoff(ctx, calls, waits); over || len(waits.Calls) == 0 {
		return end, over
	}
	switch {
	case r.interrupts.held != nil && len(waits.Suspended) == 0:
		return r.announceHeld(ctx)
	case len(waits.Calls) > 0: // also in a run that is held: a subagent that has ended does not begin again in it
		r.interrupts.held = nil
		return ending{outcome: waits.Outcome(), waits: waits}, true
	}
	return ending{}, false
}

// Names of steps, as STEP_STARTED says them.
const (
	stepModel = "model"
	stepTools = "tools"
)

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

// stepName returns the name that clients see of a step: after those of the pipeline's steps around it.
func (r *run) stepName(name string) string {
	if l := r.activeStep(); l != nil && name != "" {
		return l.Place.Name + "/" + name
	}
	return name
}

func (r *run) beginning() *runs.Beginning {
	return &runs.Beginning{Input: r.in.Input, Digest: r.in.Digest, Continues: r.in.Continues, Edits: r.in.Resume.HasEdits()}
}

// opening returns what the agent's first step opens: the run, or a subagent. Both are nil in a branch.
func (r *run) opening() (*runs.Beginning, *runs.ToolCall) {
	switch {
	case r.child != nil && r.child.BranchPath != "":
		return nil, nil
	case r.child != nil:
		return nil, &r.child.call
	}
	return r.beginning(), nil
}

func (r *run) callModel(ctx workflow.Context) (runs.ModelAnswer, error) {
	call := runs.ModelCall{Step: r.step(r.turn, stepModel, stepModel), Handoffs: r.delegation.handoffs, Priced: r.priced(), Day: r.dayAllowance()}
	if opens, announces := r.opening(); !r.log.HasBegun() && announces != nil {
		call.Announces = announces
	} else if !r.log.HasBegun() {
		call.Beginning = *opens
	} else {
		call.Steered = r.control.steering.Take()
	}
	var answer runs.ModelAnswer
	ctx = workflow.WithActivityOptions(ctx, r.options(ctx, fmt.Sprintf("turn %d", r.turn)))
	err := workflow.ExecuteActivity(ctx, runs.ActivityCallModel, call).Get(ctx, &answer)
	if err != nil {
		r.noteFailedStep(call.Step, call.Steered)
	}
	for _, u := range answer.OtherUsage {
		r.use(u)
	}
	return answer, err
}

// options bounds an activity by the time that is left, so that the deadline needs no timer. A cancelled activity is waited for:
// it closes what it opened, and reports what it recorded.
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

// failure turns an activity's error into the end of the run. Its message is never content: what the model or a tool said is in
// the log.
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

// finish writes the terminal record, also when the run is cancelled. A local activity does it within the workflow task that
// decided. If that fails, since the log is out of reach, a regular activity retries as long as it takes.
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
