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
// What clients see and people decide, it does through its [Agent].
//
// A program runs in one execution, also while people decide and through the AG-UI runs that
// continue with their decisions. It does not continue as new, and stays on its worker version. The
// run ends when it returns; an error fails the run with the code of a [StepError], or
// [runs.CodeProgram].
type Program func(ctx workflow.Context, a *Agent) error

// Programs are a worker's programs, by the name that definitions use.
type Programs map[string]Program

// Agent does steps for a program. Any coroutine of the program may use it, one step at a time. For
// several steps in parallel, use one step with branches.
type Agent struct {
	run    *run
	thread *thread // nil = a child's
	// origin is the run that began the program, input its input: later runs that continue it have
	// others.
	origin string
	input  uint64
	steps  int              // that it has done
	doing  workflow.Context // of the step that is under way; nil = none
	over   bool             // the program has ended
}

// StepError is the failure of a step.
type StepError struct{ pipeline.Failure }

func (e *StepError) Error() string { return fmt.Sprintf("step failed: %s: %s", e.Code, e.Message) }

// ErrAbandoned tells a program that its client went on without answering.
var ErrAbandoned = errors.New("workflows: the client went on with something else")

// ErrAtWork refuses a step while another coroutine's step is under way.
var ErrAtWork = errors.New("workflows: the agent is at work: several steps at once are one step with branches, such as agents.Parallel")

// errOver refuses a step of a coroutine whose program has returned.
var errOver = errors.New("workflows: the program has ended")

// maxTree bounds the JSON of a program's step, in bytes.
const maxTree = 12 << 10

// Do does one step of any kind: an agent, a tool, an approval, branches, or a change of the state.
// Its texts are templates as in pipelines, so content need not pass through the workflow. Its
// outputs are in the state under "steps", for later templates and for Value. If the step asks
// people, the AG-UI run ends, and Do returns in the run that has their answers.
//
// When ctx ends, the step ends: it is compensated for, its interrupts are cancelled, and the run
// continues.
//
// The error is a *StepError if the step failed, a temporal.CanceledError if ctx has ended,
// ErrAbandoned, or ErrAtWork.
func (a *Agent) Do(ctx workflow.Context, step agents.Stepper) error {
	s := step.AsStep()
	tree, err := json.Marshal([]agents.Step{s}) //workflowcheck:ignore the same value gives the same text
	switch {
	case err != nil:
		return fmt.Errorf("workflows: step %q: %w", s.Name, err)
	case len(tree) > maxTree:
		return fmt.Errorf("workflows: step %q has %d bytes, more than %d: put what is long into an agent's definition", s.Name, len(tree), maxTree)
	}
	done, err := a.claim(ctx)
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
		end, err := r.interpreter().steps(ctx)
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

// claim claims the agent for a step until done is called. A step whose context has ended is waited
// for.
func (a *Agent) claim(ctx workflow.Context) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, temporal.NewCanceledError()
	}
	if a.doing != nil && a.doing.Err() != nil {
		if err := a.waitIdle(ctx); err != nil {
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

// waitIdle waits until no step is under way.
func (a *Agent) waitIdle(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return a.doing == nil })
}

// wait ends the AG-UI run with interrupts, and continues in the run that has the decisions.
func (a *Agent) wait(ctx workflow.Context, end ending) error {
	t, w := a.thread, end.waits
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

// awaitAnswers waits until all interrupts are decided, or cancelled because ctx has ended.
func (a *Agent) awaitAnswers(ctx workflow.Context, w *runs.Interrupts) error {
	t := a.thread
	for t.successor == nil && !w.IsResolved() {
		if err := t.awaitDecision(ctx, w.NextTime()); err != nil {
			w.CancelAll(workflow.Now(ctx))
			continue
		}
		w.ApplyTime(workflow.Now(ctx))
	}
	return nil
}

// become continues the execution, in which a program runs, as another run.
func (t *thread) become(ctx workflow.Context, next runs.Input) {
	r := t.run
	t.notifier.handOver(ctx, append(r.interrupts.notifiable(), r.in.Resume))
	next.Queue = nil
	r.in = next
	r.turn, r.log, r.control.steering = 1, runs.Positions{}, runs.Steering{}
	r.budget.Begin(next.Limits, workflow.Now(ctx))
	r.budget.Resume(next.Limits, next.Resume)
	r.answerMessage, r.delegation.subagents = "", 0
	r.interrupts.held, r.interrupts.answered, r.interrupts.afterEnd, t.successor = nil, nil, nil, nil
	r.pipeline.position.Advances = 0
	t.enter(ctx, phaseRunning)
	_ = workflow.UpsertTypedSearchAttributes(ctx, runs.AttributeAgent.ValueSet(next.Agent), runs.AttributeRun.ValueSet(next.Run.ID)) // for Temporal's UI only
}

// Value evaluates a CEL expression over input, messages, state, steps and caller, and decodes the
// result into v. The result has at most 8 KiB of JSON: something to branch on, and no content.
func (a *Agent) Value(ctx workflow.Context, expression string, v any) error {
	done, err := a.claim(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := a.run
	a.steps++
	walk := runs.Position{Origin: a.origin, Input: a.input, Child: r.child.branch(), Number: a.steps, Cursor: pipeline.Cursor{Home: r.outputPrefix()}}
	in := runs.Advance{Step: r.ownStep(fmt.Sprintf("value/%d", a.steps)), Position: walk, Expression: expression}
	var next runs.Advanced
	if err := r.interpreter().runAdvance(ctx, in, &next); err != nil {
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

// of returns the function that runs the program of a run's agent. t is the run's thread; nil = the
// run is a child's.
func (p Programs) of(r *run, t *thread) func(workflow.Context) ending {
	return func(ctx workflow.Context) ending {
		return p.execute(ctx, &Agent{run: r, thread: t, origin: r.in.Run.ID, input: r.in.Input})
	}
}

// execute runs the agent's program, and waits for steps that it has left under way.
func (p Programs) execute(ctx workflow.Context, a *Agent) ending {
	r := a.run
	program, ok := p[r.in.Program]
	if !ok {
		return ending{outcome: runs.OutcomeError, code: runs.CodeProgramUnknown, message: "the worker does not have the agent's program"}
	}
	err := program(ctx, a)
	if a.doing != nil {
		lasting, _ := workflow.NewDisconnectedContext(ctx)
		_ = a.waitIdle(lasting)
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
