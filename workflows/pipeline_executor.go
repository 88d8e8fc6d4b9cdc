package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// The pipelineExecutor executes pipelines. It alternates between advances, which find the next
// step, and steps:
//
//	advance ──► agent ──► advance ──► call ──► advance ──► branches ──► advance ──► end
//	   │         turns       │         one        │         children
//	   └ records how the last step ended, changes the state, and finds the next step
//
// The workflow does not know the steps. The activity pipeline.advance has the definition and the
// state, and evaluates all expressions. The workflow has the position, carries out what the
// activity returns, and reports how that ended. So a history has the actions of a run, and no
// definition.
//
// After each advance the run may pause or continue as new: the position has all that the next
// execution needs.

// pipelineExecutor carries out the actions of a pipeline, or of the one step that a program has
// under way. It has no state of its own: it is made for each use, and the run's pipelineState lasts
// between steps.
type pipelineExecutor struct {
	run *run
	*pipelineState
}

// executor returns the executor of the run's steps.
func (r *run) executor() pipelineExecutor { return pipelineExecutor{r, &r.pipeline} }

// restorePosition sets the position where the steps continue: the one of this run (from Progress),
// the one of the run whose interrupts this run resumes, or the beginning. The position stays nil if
// the agent has no steps.
func (r *run) restorePosition() {
	switch {
	case r.pipeline.position != nil:
	case r.in.Resume != nil && r.in.Resume.Position != nil:
		r.pipeline.position = r.in.Resume.Position
		r.pipeline.position.Advances = 0
	case r.in.Steps:
		r.pipeline.position = &runs.PipelinePosition{Origin: r.in.Run.ID, Input: r.in.Input, Child: r.child.ref(), Event: &pipeline.Event{Kind: pipeline.EventBegun}}
		r.pipeline.position.TreePosition.Home = r.outputPrefix()
		r.pipeline.position.TreePosition.After = r.in.After
	}
	if r.pipeline.position != nil {
		r.answerMessage = r.pipeline.position.LastAnswer
	}
}

// outputPrefix returns the member of the state's steps that has a subagent's outputs, apart from
// those of other agents; "" = the run is a thread's own.
func (r *run) outputPrefix() string {
	if r.child == nil {
		return ""
	}
	return agents.AgentPrefix + r.child.CallID
}

// steps executes the pipeline from its position to its end. The ending has interrupts if the run
// ends within a step. The error is nil except to continue as new.
func (p pipelineExecutor) steps(ctx workflow.Context) (ending, error) {
	if !p.run.log.HasBegun() && p.run.in.Resume != nil {
		if end := p.reopen(ctx); end.isOver() {
			return end, nil
		}
	}
	for {
		if p.position.Event == nil {
			if end, err := p.runActiveStep(p.stepCtx(ctx)); end.isOver() || err != nil {
				return end, err
			}
		}
		next, err := p.advance(p.stepCtx(ctx))
		switch {
		case err != nil:
			return p.run.endingFromError(p.stepCtx(ctx), err), nil
		case next.IsEnd():
			return p.endOfSteps(ctx, next), nil
		}
		// A pause during the step or the advance takes effect here: clients have seen the next step
		// begin by then, but it has not done anything.
		if err := p.run.safePoint(p.stepCtx(ctx)); err != nil {
			return ending{}, err
		}
	}
}

// stepCtx returns the context for the next step: ctx, or while the run compensates a disconnected
// one, because a cancel must not stop compensation.
func (p pipelineExecutor) stepCtx(ctx workflow.Context) workflow.Context {
	if !p.run.isCompensating() {
		return ctx
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return ctx
}

// endOfSteps returns how the run ends after its last step. If the pipeline was stopped from outside
// (cancel, run limit), the pending end counts. A failure after ctx has ended counts as a cancel.
func (p pipelineExecutor) endOfSteps(ctx workflow.Context, last runs.AdvanceResult) ending {
	switch {
	case p.position.End != nil:
		return endingAfterCompensation(p.position.End)
	case last.Failed != nil && ctx.Err() != nil:
		return cancelledEnding
	case last.Failed != nil:
		return endingFromFailure(*last.Failed)
	}
	if p.run.result = 0; last.HasResult { // what the agents of steps have set is no result of the run
		p.run.result = last.Seq
	}
	return successEnding
}

// noteFailedStep notes a step whose activity failed on the main lane, so that the next activity
// fences its late attempts. steered is the steering that the step had taken. Only a pipeline
// continues after a failed step.
func (r *run) noteFailedStep(s runs.Step, steered []uint64) {
	if r.pipeline.position != nil {
		r.log.Failed = &runs.FailedStep{ID: s.ID, Name: s.Name, Closes: s.Closes, After: s.After, PipelineStep: s.PipelineStep, Steered: steered}
	}
}

// The IDs of a run's first step: stepReopen if it continues a pipeline, stepAdvance if it begins
// one.
const (
	stepReopen  = "reopen"
	stepAdvance = "advance/1"
)

// firstStepID returns the ID of the run's first step. The activity run.finish opens a run under
// this ID if the first step has not: a late attempt of that step then finds the run open. The first
// step of a program is not known: a late attempt of it is refused with stream.ErrOver.
func (r *run) firstStepID() string {
	switch {
	case r.in.Program != "":
		return r.ownStep("program").ID
	case r.pipeline.position == nil:
		return r.step(1, stepModel, stepModel).ID
	case r.in.Resume != nil:
		return r.ownStep(stepReopen).ID
	}
	return r.ownStep(stepAdvance).ID
}

// reopen begins a run that continues a pipeline: it opens the run and its open steps in the log,
// and applies the decisions about the interrupts of the run before. Afterwards the position has an
// event, or the active step continues. The ending is zero if the run continues.
func (p pipelineExecutor) reopen(ctx workflow.Context) ending {
	in := runs.AdvanceInput{Step: p.run.ownStep(stepReopen), Position: *p.position, Resumes: true}
	opening, _ := workflow.NewDisconnectedContext(ctx) // the log needs RUN_STARTED before the reaction to a cancel
	var next runs.AdvanceResult
	if err := p.runAdvance(opening, in, &next); err != nil {
		return p.run.endingFromError(ctx, err)
	}
	set := p.run.in.Resume
	switch {
	case p.position.Branches != nil && set.Exceeded == nil:
		return ending{} // runBranches hands the decisions to the suspended branches
	case set.FailsRun():
		return p.onStepEnd(ctx, expiredEnding)
	}
	if calls := decidedCalls(set); len(calls) > 0 {
		if end := p.run.applyDecisions(ctx, set, p.run.step(p.run.turn, stepTools, stepTools)); end.isOver() {
			return p.onStepEnd(ctx, end)
		}
	}
	if active := p.position.Active; active != nil && active.CallID != "" {
		return p.onStepEnd(ctx, successEnding)
	}
	p.run.turn++
	return ending{}
}

// runActiveStep executes the branches, the call, the agent or the wait that the pipeline has
// reached, and sets the event with which it ended. A run that is cancelled or over its limits
// begins no step, but takes over one that the log has. The ending is zero if the run continues. The
// error is nil except to continue as new.
func (p pipelineExecutor) runActiveStep(ctx workflow.Context) (end ending, err error) {
	pos := p.position
	end = p.run.mustEnd(ctx)
	// Suspended branches restart also in a cancelled run: only they know what they have to
	// compensate.
	restartsBranches := pos.Branches != nil && pos.Branches.Suspended && ctx.Err() != nil
	switch {
	case end.isOver() && !restartsBranches && (pos.Branches != nil || !p.run.takesOver(ctx)):
	case pos.Branches != nil:
		end, err = p.runBranches(ctx)
	case pos.Active != nil && pos.Active.CallID != "":
		end, err = p.runCall(ctx)
	case pos.Active != nil:
		end, err = p.runAgent(ctx)
	case !pos.Wake.IsZero():
		return p.sleep(ctx), nil
	default:
		return ending{}, errors.New("workflows: the pipeline's position has no action")
	}
	switch {
	case err != nil:
		return end, err
	case !end.isOver():
		end = successEnding
	}
	return p.onStepEnd(ctx, end), nil
}

// sleep waits for the next try of a step: until the position's wake time, or until the run's
// deadline, which ends the run. The ending is zero if the run continues.
func (p pipelineExecutor) sleep(ctx workflow.Context) ending {
	if workflow.Sleep(ctx, runs.Earlier(p.position.Wake, p.run.budget.Deadline).Sub(workflow.Now(ctx))) != nil {
		return p.onStepEnd(ctx, cancelledEnding)
	}
	if p.run.budget.Deadline.Before(p.position.Wake) {
		return p.onStepEnd(ctx, p.run.durationEnding())
	}
	p.position.Event = &pipeline.Event{Kind: pipeline.EventWoken}
	return ending{}
}

// runCall makes the tool call or approval of a step, and waits for its interrupts. An execution
// that was parked in between (Answer is nil, interrupts are held) only waits. The ending
// is how the step ended; zero = the step succeeded. The error is nil except to continue as new.
func (p pipelineExecutor) runCall(ctx workflow.Context) (end ending, err error) {
	if answer := p.position.Answer; answer != nil {
		p.position.Answer = nil
		if end := p.run.makeCalls(ctx, *answer); end.isOver() {
			return end, nil
		}
		p.run.turn++
	}
	if p.run.interrupts.held != nil {
		return p.run.continueHeld(ctx)
	}
	return ending{}, nil
}

// runAgent takes turns of a step's agent until the agent is done. A subagent's limits apply to it,
// and its turn counts are in the active step. It returns how the step ended. The error is nil
// except to continue as new.
func (p pipelineExecutor) runAgent(ctx workflow.Context) (end ending, err error) {
	for ; ; p.run.turn++ {
		if p.run.interrupts.held == nil {
			if active := p.position.Active; active.Turns >= active.Limits.Turns {
				return limitEnding(runs.CodeLimitTurns, "the agent reached its limit of %d turns", active.Limits.Turns), nil
			}
			if err := p.run.safePoint(ctx); err != nil {
				return ending{}, err
			}
			if end = p.run.checkSoftLimits(ctx); !end.isOver() && p.run.interrupts.held == nil {
				p.position.Active.Turns++
				end = p.run.takeTurn(ctx)
			}
			if end.isOver() {
				p.run.turn++
				return end, nil
			}
		}
		if p.run.interrupts.held != nil {
			if end, err := p.run.continueHeld(ctx); end.isOver() || err != nil {
				return end, err
			}
		}
	}
}

// isDoneDespiteCancel reports whether the turn has ended, although the run is cancelled: no calls are
// left. Then the active step counts as done, and is compensated for. A run without one goes on only
// to what the log has.
func (r *run) isDoneDespiteCancel(ctx workflow.Context, left int) bool {
	return left == 0 && (r.activeStep() != nil || r.takesOver(ctx))
}

// onStepEnd turns the end of a step into the event for the next advance, and leaves an event that
// branches have set. The ending is zero, unless the run ends instead: with interrupts, because
// another execution owns it, or because it is cancelled or over its limits and has nothing to
// compensate.
func (p pipelineExecutor) onStepEnd(ctx workflow.Context, end ending) ending {
	pos := p.position
	if end.interrupts != nil {
		return end
	}
	p.run.interrupts.unhold() // the turn may have failed before its interrupts were announced
	switch {
	case end.code == runs.ErrorFenced, end.code == runs.ErrorLogLost:
		return end
	case (end.endsPipeline() || end.outcome != runs.OutcomeSuccess && p.run.isOverdue(ctx)) && !p.hasAdvanced(ctx):
		return p.compensate(ctx, end)
	case end.outcome != runs.OutcomeSuccess:
		failure := end.failure()
		pos.Event = &pipeline.Event{Kind: pipeline.EventFailed, Failure: &failure}
	case pos.Event == nil:
		pos.Event, pos.Answered, pos.Result = &pipeline.Event{Kind: pipeline.EventDone}, p.run.answerMessage, p.run.result
		if pos.Active != nil && pos.Active.PipelineStep.Hidden { // its answer is not that of the subagent
			p.run.answerMessage = pos.LastAnswer
		}
		if p.run.child != nil && p.run.child.BranchPath == "" {
			pos.LastAnswer = p.run.answerMessage
		}
	}
	return ending{}
}
