package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

// A turn is one model call and the tool calls of its answer. This file decides after each model
// call: the run ends, calls the model again, makes tool calls, or waits for interrupts. Two loops
// take turns: run.runTurns for an agent without steps, pipelineExecutor.runAgent for an agent
// within a pipeline.

// beginTurn checks what may prevent a turn of the run's own agent: its limit of turns, a pause, a
// history that has grown long, soft limits. Then it takes the turn, unless approvers have to decide
// about a soft limit first. The ending is zero if the run continues. The error continues as new.
func (r *run) beginTurn(ctx workflow.Context) (end ending, err error) {
	if r.budget.Spent.Turns >= r.in.Limits.Turns {
		return limitEnding(runs.CodeLimitTurns, "the run reached its limit of %d turns", r.in.Limits.Turns), nil
	}
	if err := r.safePoint(ctx); err != nil {
		return ending{}, err
	}
	if end = r.checkSoftLimits(ctx); !end.isOver() && r.interrupts.held == nil {
		end = r.takeTurn(ctx)
	}
	return end, nil
}

// takeTurn calls the model, and makes the tool calls that are no interrupts. Afterwards
// interrupts.held has the turn's interrupts if the run is to wait for them. The ending is
// zero if the run and the active step continue.
func (r *run) takeTurn(ctx workflow.Context) ending {
	r.budget.Spent.Turns++
	answer, err := r.callModel(ctx)
	if err != nil {
		return r.endingFromError(ctx, err)
	}
	r.log.NoteRecord(answer.Seq, r.stepName(stepModel))
	r.use(answer.Usage)
	isLast := answer.Count()+len(answer.Questions) == 0 && len(r.control.steering.Pending()) == 0
	switch {
	case answer.Exceeded != nil:
		return r.interruptForBudget(ctx, *answer.Exceeded)
	case answer.Outcome == runs.OutcomeCancelled, ctx.Err() != nil && !r.isDoneDespiteCancel(ctx, answer.Count()) && !r.takesOver(ctx):
		return cancelledEnding
	case isLast && answer.Output == runs.OutputInvalid:
		return invalidOutputEnding(answer)
	case isLast && answer.Output != runs.OutputRepair:
		r.setAnswer(answer)
		return successEnding
	}
	if answer.Output == runs.OutputRepair {
		r.noteRepair()
	}
	if end := r.checkLimits(); end.isOver() {
		return end
	}
	if answer.Count()+len(answer.Questions) == 0 {
		return ending{} // the answer is sent back, or steering arrived during the model call: the next turn has it
	}
	return r.makeCalls(ctx, answer)
}

// setAnswer notes the last answer of the run, or of the agent of a step.
func (r *run) setAnswer(answer runs.ModelAnswer) {
	r.answerMessage, r.result = answer.MessageID, 0
	if answer.Output == runs.OutputValid {
		r.result = answer.Seq
	}
}

// noteRepair counts an invalid answer that is sent back to the active agent.
func (r *run) noteRepair() {
	if active := r.activeStep(); active != nil {
		active.Repairs++
		return
	}
	r.repairs++
}

// activeRepairs returns how many invalid answers were sent back to the active agent.
func (r *run) activeRepairs() int {
	if active := r.activeStep(); active != nil {
		return active.Repairs
	}
	return r.repairs
}

// makeCalls makes the calls of an answer: first those that are no interrupts, then a handoff. If
// interrupts are left, a held run announces them, and another run ends with them. The run fails if
// it cannot carry all calls: ModelAnswer.Calls lacks an interrupt, or a call with a queue or a
// sequence, or a payload has no room.
func (r *run) makeCalls(ctx workflow.Context, answer runs.ModelAnswer) ending {
	interrupts, limit := r.interruptsOfAnswer(ctx, answer), r.activeAgent().Limits.ParallelTools
	lacksInterrupts := answer.InterruptCount > len(interrupts.Items)
	lacksCalls := answer.QueuedOrSequencedCount > answer.CountQueuedOrSequenced()
	if answer.Count() > limit || lacksInterrupts || lacksCalls {
		return limitEnding(runs.CodeLimitParallelTools, "the model asked for more than %d tool calls at once", limit)
	}
	if answer.InterruptCount > 0 && !r.admitInterrupts(interrupts) {
		return tooManyInterruptsEnding
	}
	step := r.step(r.turn, stepTools, stepTools)
	if end := r.callTools(ctx, step, freeCalls(answer), interrupts); end.isOver() {
		return end
	}
	if end := r.callHandoff(ctx, step, interrupts); end.isOver() || len(interrupts.Items) == 0 {
		return end
	}
	return r.waitFor(ctx, interrupts)
}

// Names of steps in STEP_STARTED. They are also part of step IDs.
const (
	stepModel = "model"
	stepTools = "tools"
)

// callModel makes the model call of the current turn. The first activity of a run carries the
// beginning, or the call that a subagent works for. Later model calls carry the steering that no
// model call has received. It counts usage of earlier attempts (OtherUsage), but not answer.Usage.
func (r *run) callModel(ctx workflow.Context) (runs.ModelAnswer, error) {
	call := runs.ModelCall{Step: r.step(r.turn, stepModel, stepModel), Handoffs: r.delegation.handoffs, Repairs: r.activeRepairs(), Priced: r.needsPrice(), Day: r.dayAllowance()}
	if opens, announces := r.firstStepOpening(); !r.log.HasBegun() && announces != nil {
		call.Announces = announces
	} else if !r.log.HasBegun() {
		call.Beginning = *opens
	} else {
		call.Steered = r.control.steering.TakePending()
	}
	e := r.scheduling(ctx, runs.ActivityCallModel, fmt.Sprintf("turn %d", r.turn))
	e.stops = func() bool { return r.isStoppingOrOverdue(ctx) }
	answer, err := executeStep[runs.ModelAnswer](ctx, call, e)
	if err != nil {
		r.noteFailedStep(call.Step, call.Steered)
	}
	if err == nil {
		r.control.steering.TakeBack(answer.Missed)
	}
	for _, u := range answer.OtherUsage {
		r.use(u)
	}
	return answer, err
}
