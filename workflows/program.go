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

// Program is an agent that is written as a workflow: for what no tree of steps can say. It is ordinary workflow
// code, deterministic, and free to use activities, timers and signals of its own; what clients are to see, and
// people to decide, it does with the [Agent] that it is given.
//
// A program runs in one execution for as long as it takes, also while people decide and through the AG-UI runs that go on
// with their answers: it does not continue as new, and its worker's version stays with it. Its end is the run's; an
// error fails the run with the code of a [StepError], or CodeProgram.
type Program func(ctx workflow.Context, a *Agent) error

// Programs are those of a worker, by the name that definitions say.
type Programs map[string]Program

// Agent is what a program does its steps with, in whichever of its coroutines: one thing at a time is done with it,
// and several at once by a step with branches.
type Agent struct {
	run *run
	// origin is the run that began the program, input its input: later runs that continue it have others.
	origin string
	input  uint64
	steps  int              // that it has done
	doing  workflow.Context // of the step that is under way; nil = none
	over   bool             // the program has ended
}

// StepError is a step that has failed.
type StepError struct{ pipeline.Failure }

func (e *StepError) Error() string { return fmt.Sprintf("step failed: %s: %s", e.Code, e.Message) }

// ErrAbandoned ends a program whose client went on with something else.
var ErrAbandoned = errors.New("workflows: the client went on with something else")

// ErrAtWork refuses what a program asks of its [Agent] while that is at work for another coroutine.
var ErrAtWork = errors.New("workflows: the agent is at work: several steps at once are one step with branches, such as agents.Parallel")

// errOver refuses what a coroutine asks for that has outlived its program.
var errOver = errors.New("workflows: the program has ended")

// maxTree bounds, in bytes of JSON, a step that a program does.
const maxTree = 12 << 10

// Do does one step of any kind, with all that stands in it: an agent, a tool, a question, branches, a change of
// the state. Texts in it are the templates of pipelines, so that content need not pass through the workflow; its outputs
// are in the state below steps, for templates of later steps and for Value. Where it asks people, the AG-UI run ends, and
// Do returns in the one that has their answers.
//
// Where ctx ends, so does the step: what it has done is compensated for, its questions are given up, and the run goes on.
//
// The error is a *StepError if the step has failed, a temporal.CanceledError if ctx has ended, as it does when the run is
// cancelled, ErrAbandoned, or ErrAtWork.
func (a *Agent) Do(ctx workflow.Context, step agents.Stepper) error {
	s := step.AsStep()
	tree, err := json.Marshal([]agents.Step{s}) //workflowcheck:ignore the same value gives the same text
	switch {
	case err != nil:
		return fmt.Errorf("workflows: step %q: %w", s.Name, err)
	case len(tree) > maxTree:
		return fmt.Errorf("workflows: step %q has %d bytes, more than %d: put what is long into an agent's definition", s.Name, len(tree), maxTree)
	}
	done, err := a.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := a.run
	a.steps++
	r.pipeline.position = &runs.Position{
		Origin: fmt.Sprintf("%s/%d", a.origin, a.steps), Input: a.input, Child: r.child.branch(), Number: a.steps, Event: &pipeline.Event{Kind: pipeline.EventBegun},
		Cursor: pipeline.Cursor{Keeps: true, Home: r.outputPrefix()},
	}
	r.pipeline.tree = tree
	defer func() { r.pipeline.position = nil }()
	for {
		end, err := r.pipeline.steps(ctx)
		switch {
		case err != nil:
			return err
		case end.waits != nil:
			if err := a.wait(ctx, end); err != nil {
				return err
			}
		case end.outcome == runs.OutcomeCancelled:
			if ctx.Err() == nil { // the log has told of a cancel before the signal that brings it
				r.cancel()
			}
			return temporal.NewCanceledError()
		case end.outcome != runs.OutcomeSuccess:
			return &StepError{end.why()}
		default:
			return nil
		}
	}
}

// take has the agent at work until done is called. What is under way and has to end is waited for.
func (a *Agent) take(ctx workflow.Context) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError()
	}
	if a.doing != nil && a.doing.Err() != nil {
		if err := a.rest(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case a.over:
		return nil, errOver
	case a.doing != nil:
		return nil, ErrAtWork
	}
	a.doing = ctx
	return func() { a.doing = nil }, nil
}

// rest waits until nothing is under way.
func (a *Agent) rest(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return a.doing == nil })
}

// wait ends the AG-UI run, and goes on in the one that has what it waits for.
func (a *Agent) wait(ctx workflow.Context, end ending) error {
	t, w := a.run.thread, end.waits
	t.awaitBehind(ctx, w)
	result, err := t.finish(ctx, end)
	if err != nil {
		return err
	}
	if result.Outcome != end.outcome {
		return &StepError{pipeline.Failure{Code: result.Code, Message: "the run was ended"}}
	}
	w.After = result.Seq
	if err := a.awaitAnswers(ctx, w); err != nil {
		return err
	}
	if t.closing {
		return ErrAbandoned
	}
	next := t.chooseSuccessor(ctx)
	next.Resume = w
	t.become(ctx, *next)
	return nil
}

// awaitAnswers waits until all is answered, or given up since ctx has ended.
func (a *Agent) awaitAnswers(ctx workflow.Context, w *runs.Interrupts) error {
	t := a.run.thread
	for t.successor == nil && !w.IsResolved() {
		if err := t.awaitDecision(ctx, w.NextTime()); err != nil {
			w.CancelAll(workflow.Now(ctx))
			continue
		}
		w.ApplyTime(workflow.Now(ctx))
	}
	return nil
}

// become makes the execution, which a program runs in, go on as another run.
func (t *thread) become(ctx workflow.Context, next runs.Input) {
	r := t.run
	t.notifier.handOver(ctx, append(r.interrupts.past(), r.in.Resume))
	next.Queue = nil
	r.in = next
	r.turn, r.log, r.steering = 1, runs.Positions{}, runs.Steering{}
	r.budget.Begin(next.Limits, workflow.Now(ctx))
	r.budget.Resume(next.Limits, next.Resume)
	r.answerMessage, r.delegation.subagents = "", 0
	r.interrupts.held, r.interrupts.answered, r.interrupts.afterEnd, t.successor = nil, nil, nil, nil
	r.pipeline.position.Advances = 0
	t.enter(ctx, phaseRunning)
	_ = workflow.UpsertTypedSearchAttributes(ctx, runs.AttributeAgent.ValueSet(next.Agent), runs.AttributeRun.ValueSet(next.Run.ID)) // for Temporal's UI only
}

// Value evaluates an expression in CEL over input, messages, state, steps and caller, as steps see them, and
// reads what it comes to into v. That is at most 8 KiB: a decision to branch on, and no content.
func (a *Agent) Value(ctx workflow.Context, expression string, v any) error {
	done, err := a.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := a.run
	a.steps++
	walk := runs.Position{Origin: a.origin, Input: a.input, Child: r.child.branch(), Number: a.steps, Cursor: pipeline.Cursor{Home: r.outputPrefix()}}
	in := runs.Advance{Step: r.ownStep(fmt.Sprintf("value/%d", a.steps)), Position: walk, Expression: expression}
	var next runs.Advanced
	if err := r.pipeline.runAdvance(ctx, in, &next); err != nil {
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

// program runs the agent's program, until nothing is under way that it has begun with its agent.
func (r *run) program(ctx workflow.Context) ending {
	program, ok := r.programs[r.in.Program]
	if !ok {
		return ending{outcome: runs.OutcomeError, code: runs.CodeProgramUnknown, message: "the worker does not have the agent's program"}
	}
	a := &Agent{run: r, origin: r.in.Run.ID, input: r.in.Input}
	err := program(ctx, a)
	if a.doing != nil {
		lasting, _ := workflow.NewDisconnectedContext(ctx)
		_ = a.rest(lasting)
	}
	a.over = true
	var failed *StepError
	var again *workflow.ContinueAsNewError
	switch {
	case errors.Is(err, ErrAbandoned):
		return ending{outcome: runs.OutcomeCancelled}
	case temporal.IsCanceledError(err) || err != nil && ctx.Err() != nil:
		return ending{outcome: runs.OutcomeCancelled}
	case errors.As(err, &failed):
		return ending{outcome: runs.OutcomeError, code: failed.Code, message: failed.Message}
	case errors.As(err, &again):
		return ending{outcome: runs.OutcomeError, code: runs.CodeProgram, message: "the agent's program would continue as new: no program does"}
	case err != nil:
		workflow.GetLogger(ctx).Error("the agent's program failed", r.in.Run.LogAttrs(r.in.Agent, "program", r.in.Program, "error", err)...)
		return ending{outcome: runs.OutcomeError, code: runs.CodeProgram, message: "the agent's program failed"}
	}
	return ending{outcome: runs.OutcomeSuccess}
}
