package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/runs"
)

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

// takeTurn calls the model, and makes the tool calls that are no interrupts. over tells that the
// run ends.
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

// makeCalls makes the calls of a turn: those that are no interrupts, and then the one that hands
// the thread over. over tells that the run ends.
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
