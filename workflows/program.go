package workflows

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// Program is an agent that is written as a Go workflow function, for what steps cannot express. It
// is ordinary deterministic workflow code, and may use activities, timers and signals of its own.
// Everything that clients see and approvers decide goes through its [Agent].
//
// A program runs in one execution, also while approvers decide, and through the AG-UI runs that
// continue with their decisions. It does not continue as new, and stays on its worker version. The
// run ends when it returns; an error fails the run with the code of a [StepError], or
// [runs.CodeProgram].
type Program func(ctx workflow.Context, a *Agent) error

// Programs are a worker's programs, by the name that definitions use. Its methods are the workflow
// functions that may run a program. It must not change after [Register].
type Programs map[string]Program

// Agent does steps for a program. Any coroutine of the program may use it, one step at a time. For
// several steps in parallel, use one step with branches. An Agent lives as long as its program:
// afterwards every call fails.
type Agent struct {
	run *run
	// thread is nil if a subagent is the program. Only a thread's program can end its AG-UI run
	// with interrupts; a subagent's is held.
	thread *thread
	// origin is the ID of the run that began the program, input the sequence of that run's input.
	// Later runs of the program have others; step IDs and outputs keep these.
	origin string
	input  uint64
	steps  int              // steps and values so far; part of step IDs
	doing  workflow.Context // context of the step under way; nil = none
	over   bool             // the program has ended
}

// StepError is the failure of a step, with a code for programs to branch on. Its message has no
// content.
type StepError struct{ pipeline.Failure }

// Error returns the code and the message of the failure.
func (e *StepError) Error() string { return fmt.Sprintf("step failed: %s: %s", e.Code, e.Message) }

// ErrAbandoned reports that the client sent another input instead of the results that the step
// waits for. The program should return it: the run then ends as cancelled.
var ErrAbandoned = errors.New("workflows: the client sent another input instead of the results")

// ErrStepActive refuses a step while the step of another coroutine is under way.
var ErrStepActive = errors.New("workflows: another step is active: use one step with branches, such as agents.Parallel, for concurrent steps")

// errOver refuses a step of a coroutine that outlives its program.
var errOver = errors.New("workflows: the program has ended")

// maxTree bounds the JSON of a program's step, in bytes.
const maxTree = 12 << 10

// Do does one step of any kind: an agent, a tool, an approval, branches, or a change of the state.
// It blocks until the step has ended. The texts of the step are templates as in pipelines, so
// content need not pass through the workflow. Its outputs are in the state under "steps", for later
// templates and for Value. If the step has interrupts, the AG-UI run may end, and Do returns in the
// run that has the decisions.
//
// When ctx ends, the step ends: it is compensated for, its interrupts are cancelled, and the run
// continues.
//
// The error is a *StepError if the step failed, a temporal.CanceledError if ctx has ended,
// ErrAbandoned, or ErrStepActive. Another error means that the step is invalid or larger than 12
// KiB of JSON: then it did not begin.
func (a *Agent) Do(ctx workflow.Context, step agents.Stepper) error {
	s := step.AsStep()
	tree, err := json.Marshal([]agents.Step{s}) //workflowcheck:ignore the same value gives the same text
	switch {
	case err != nil:
		return fmt.Errorf("workflows: step %q: %w", s.Name, err)
	case len(tree) > maxTree:
		return fmt.Errorf("workflows: step %q has %d bytes, more than %d: move long texts into the definition of an agent", s.Name, len(tree), maxTree)
	}
	done, err := a.claim(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := a.run
	a.steps++
	// TreePosition.Keeps: the outputs of earlier steps stay in the state.
	r.pipeline.position = &runs.PipelinePosition{
		Origin: fmt.Sprintf("%s/%d", a.origin, a.steps), Input: a.input, Child: r.child.ref(), Number: a.steps, Event: &pipeline.Event{Kind: pipeline.EventBegun},
		TreePosition: pipeline.TreePosition{Keeps: true, Home: r.outputPrefix()},
	}
	r.pipeline.tree = tree
	defer func() { r.pipeline.position = nil }()
	for {
		end, err := r.executor().steps(ctx)
		switch {
		case err != nil:
			return err
		case end.interrupts != nil:
			if err := a.awaitDecisions(ctx, end); err != nil {
				return err
			}
		case end.outcome == runs.OutcomeCancelled:
			if ctx.Err() == nil { // an activity found the cancel request in the log before the signal arrived
				r.cancel()
			}
			return temporal.NewCanceledError()
		case end.outcome != runs.OutcomeSuccess:
			return &StepError{end.failure()}
		default:
			return nil
		}
	}
}

// claim reserves the agent for a step until done is called. It blocks while a step whose context
// has ended is still ending. It fails if ctx has ended, another step is under way, or the program
// is over.
func (a *Agent) claim(ctx workflow.Context) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError()
	}
	if a.doing != nil && a.doing.Err() != nil {
		if err := a.awaitIdle(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case a.over:
		return nil, errOver
	case a.doing != nil:
		return nil, ErrStepActive
	}
	a.doing = ctx
	return func() { a.doing = nil }, nil
}

// awaitIdle blocks until no step is under way, or ctx ends.
func (a *Agent) awaitIdle(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return a.doing == nil })
}

// awaitDecisions ends the AG-UI run with the interrupts of the ending, blocks until they are
// decided, and continues this execution in the run that has the decisions. The error is
// ErrAbandoned, or tells that the log has another end of the run.
func (a *Agent) awaitDecisions(ctx workflow.Context, end ending) error {
	t, set := a.thread, end.interrupts
	t.setInterruptsAfterEnd(ctx, set)
	result, err := t.finish(ctx, end)
	if err != nil {
		return err
	}
	if result.Outcome != end.outcome {
		return &StepError{pipeline.Failure{Code: result.Code, Message: "the run was ended"}}
	}
	t.announceInterruptsAfterEnd(ctx, result.Seq)
	a.awaitAnswers(ctx, set)
	if t.closing {
		return ErrAbandoned
	}
	next, steps := t.takeSuccessor(ctx), a.run.pipeline
	t.continueAs(ctx, *next)
	steps.position.Advances = 0
	a.run.pipeline = steps
	return nil
}

// awaitAnswers blocks until an input has answered the interrupts, or all are decided. When ctx
// ends, it cancels them and returns: the caller then compensates in the next run.
func (a *Agent) awaitAnswers(ctx workflow.Context, set *runs.Interrupts) {
	t := a.thread
	for t.successor == nil && !set.IsResolved() {
		if err := t.awaitDecision(ctx, set.NextTime()); err != nil {
			set.CancelAll(workflow.Now(ctx))
			continue
		}
		set.ApplyTime(workflow.Now(ctx))
	}
}

// Value evaluates a CEL expression over input, messages, state, steps and caller, and decodes the
// result into v. The activity pipeline.advance evaluates it; clients see no step. The result has at
// most 8 KiB of JSON: a value to branch on, not content. The error is a *StepError if the
// evaluation failed.
func (a *Agent) Value(ctx workflow.Context, expression string, v any) error {
	done, err := a.claim(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := a.run
	a.steps++
	in := runs.AdvanceInput{Step: r.ownStep(fmt.Sprintf("value/%d", a.steps)), Position: a.position(), Expression: expression}
	var next runs.AdvanceResult
	if err := r.executor().runAdvance(ctx, in, &next); err != nil {
		return err
	}
	if next.Failed != nil {
		return &StepError{*next.Failed}
	}
	err = json.Unmarshal(next.Value, v) //workflowcheck:ignore the same text gives the same value
	if err != nil {
		return fmt.Errorf("workflows: value of %q: %w", expression, err)
	}
	return nil
}

// programOf returns the function that executes the program of a run's agent. t is the run's
// thread; nil = the run is a child's.
func (p Programs) programOf(r *run, t *thread) func(workflow.Context) ending {
	return func(ctx workflow.Context) ending {
		return p.execute(ctx, &Agent{run: r, thread: t, origin: r.in.Run.ID, input: r.in.Input})
	}
}

// execute runs the agent's program, waits for steps that it has left under way, and returns the
// ending of the run. A program that the worker does not have fails the run.
func (p Programs) execute(ctx workflow.Context, a *Agent) ending {
	r := a.run
	program, ok := p[r.in.Program]
	if !ok {
		return ending{outcome: runs.OutcomeError, code: runs.CodeProgramUnknown, message: fmt.Sprintf("the worker does not have the agent's program %.64q", r.in.Program)}
	}
	err := program(ctx, a)
	if a.doing != nil {
		disconnected, _ := workflow.NewDisconnectedContext(ctx)
		_ = a.awaitIdle(disconnected)
	}
	a.over = true
	var failed *StepError
	var again *workflow.ContinueAsNewError
	switch {
	case errors.Is(err, ErrAbandoned):
		return cancelledEnding
	case temporal.IsCanceledError(err) || err != nil && ctx.Err() != nil:
		return cancelledEnding
	case errors.As(err, &failed):
		return endingFromFailure(pipeline.Failure{Code: failed.Code, Message: failed.Message})
	case errors.As(err, &again):
		return programFailure("the agent's program must not continue as new")
	case err != nil:
		workflow.GetLogger(ctx).Error("the agent's program failed", r.in.Run.LogAttrs(r.in.Agent, "program", r.in.Program, "error", err)...)
		return programFailure("the agent's program failed")
	}
	return a.evaluateResult(ctx)
}

// evaluateResult evaluates the result of the agent when its program has ended, and returns the ending
// of the run. An agent without an output has none.
func (a *Agent) evaluateResult(ctx workflow.Context) ending {
	r := a.run
	if r.result = 0; !r.in.HasResult {
		return successEnding
	}
	in := runs.AdvanceInput{Step: r.ownStep("result"), Position: a.position(), EvaluatesResult: true}
	var next runs.AdvanceResult
	switch err := r.executor().runAdvance(ctx, in, &next); {
	case err != nil:
		return r.endingFromError(ctx, err)
	case next.Failed != nil:
		return endingFromFailure(*next.Failed)
	}
	r.result = next.Seq
	return successEnding
}

// position returns the position at which an expression of the program is evaluated.
func (a *Agent) position() runs.PipelinePosition {
	r := a.run
	return runs.PipelinePosition{Origin: a.origin, Input: a.input, Child: r.child.ref(), Number: a.steps, TreePosition: pipeline.TreePosition{Home: r.outputPrefix()}}
}
