package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// The interpreter executes pipelines. It alternates between advances, which find the next step, and
// steps:
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
// Before each advance the run may pause or continue as new: the position has all that the next
// execution needs. If nothing can happen between a tool call and the next advance, the activity of
// the call makes the advance, too (chained_advance.go).

// endingOf returns how the run ends after compensation.
func endingOf(t *runs.PendingEnd) ending {
	if t.Outcome == runs.OutcomeCancelled {
		return ending{outcome: t.Outcome}
	}
	end := endingFromFailure(t.Failure)
	end.outcome = t.Outcome
	return end
}

// interpreter executes the steps of an agent that is a pipeline, or the one step that a program has
// under way. It has no state of its own: it is made for each use, and the run's pipelineState lasts
// between steps.
type interpreter struct {
	run *run
	*pipelineState
}

// interpreter returns the interpreter of the run's steps.
func (r *run) interpreter() interpreter { return interpreter{r, &r.pipeline} }

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
		r.pipeline.position = &runs.PipelinePosition{Origin: r.in.Run.ID, Input: r.in.Input, Child: r.child.place(), Event: &pipeline.Event{Kind: pipeline.EventBegun}}
		r.pipeline.position.Cursor.Home = r.outputPrefix()
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
func (p interpreter) steps(ctx workflow.Context) (ending, error) {
	if !p.run.log.HasBegun() && p.run.in.Resume != nil {
		if end, over := p.reopen(ctx); over {
			return end, nil
		}
	}
	for {
		if p.position.Event == nil {
			if end, over, err := p.runActiveStep(p.compensationCtx(ctx)); over || err != nil {
				return end, err
			}
		}
		ahead := p.chained != nil // the call's activity has made the advance: its safe point follows it
		if !ahead {
			if err := p.run.safePoint(p.compensationCtx(ctx)); err != nil {
				return ending{}, err
			}
		}
		next, err := p.advance(p.compensationCtx(ctx))
		switch {
		case err != nil:
			return p.run.endingFromError(p.compensationCtx(ctx), err), nil
		case next.IsEnd():
			return p.endOfSteps(ctx, next), nil
		case ahead:
			if err := p.run.safePoint(p.compensationCtx(ctx)); err != nil {
				return ending{}, err
			}
		}
	}
}

// compensationCtx returns the context for the next step. While the run compensates it is detached
// from ctx, because a cancel of the run must not stop compensation.
func (p interpreter) compensationCtx(ctx workflow.Context) workflow.Context {
	if !p.run.isCompensating() {
		return ctx
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return ctx
}

// endOfSteps returns how the run ends after its last step. If the pipeline was stopped from outside
// (cancel, run limit), the pending end counts. A failure after ctx has ended counts as a cancel.
func (p interpreter) endOfSteps(ctx workflow.Context, last runs.AdvanceResult) ending {
	switch {
	case p.position.End != nil:
		return endingOf(p.position.End)
	case last.Failed != nil && ctx.Err() != nil:
		return ending{outcome: runs.OutcomeCancelled}
	case last.Failed != nil:
		return endingFromFailure(*last.Failed)
	}
	return ending{outcome: runs.OutcomeSuccess}
}

// noteFailedStep notes a step whose activity failed on the main lane, so that the next activity
// fences its late attempts. steered is the steering that the step had taken. Only a pipeline
// continues after a failed step.
func (r *run) noteFailedStep(s runs.Step, steered []uint64) {
	if r.pipeline.position != nil {
		r.log.Failed = &runs.FailedStep{ID: s.ID, Name: s.Name, Closes: s.Closes, After: s.After, Place: s.Place, Steered: steered}
	}
}

// The IDs of a run's first step: stepReopen if it continues a pipeline, stepAdvance if it begins
// one.
const (
	stepReopen  = "reopen"
	stepAdvance = "advance/1"
)

// firstStepID returns the ID of the run's first step. The activity run.finish opens a run under
// this ID if the first step has not: a late attempt of that step then finds the run open.
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
// event, or the active step continues. over reports that the run ends.
func (p interpreter) reopen(ctx workflow.Context) (end ending, over bool) {
	in := runs.AdvanceInput{Step: p.run.ownStep(stepReopen), Position: *p.position, Resumes: true}
	opening, _ := workflow.NewDisconnectedContext(ctx) // the log needs RUN_STARTED before the reaction to a cancel
	var next runs.AdvanceResult
	if err := p.runAdvance(opening, in, &next); err != nil {
		return p.run.endingFromError(ctx, err), true
	}
	set := p.run.in.Resume
	switch {
	case p.position.Branches != nil && set.Exceeded == nil:
		return ending{}, false // runBranches hands the decisions to the suspended branches
	case set.FailsRun():
		return p.onStepEnd(ctx, ending{outcome: runs.OutcomeError, code: runs.CodeApprovalExpired, message: "the interrupt expired without a decision"})
	}
	if calls := decidedCalls(set); len(calls) > 0 {
		if end, over = p.run.applyDecisions(ctx, set, p.run.step(p.run.turn, stepTools, stepTools)); over {
			return p.onStepEnd(ctx, end)
		}
	}
	if active := p.position.Active; active != nil && active.CallID != "" {
		return p.onStepEnd(ctx, ending{outcome: runs.OutcomeSuccess})
	}
	p.run.turn++
	return ending{}, false
}

// runActiveStep executes the branches, the call, the agent or the wait that the pipeline has
// reached, and sets the event with which it ended. A run that is cancelled or over its limits
// begins no step. over reports that the run ends. The error is nil except to continue as new.
func (p interpreter) runActiveStep(ctx workflow.Context) (end ending, over bool, err error) {
	pos := p.position
	end, over = p.run.mustEnd(ctx)
	// Suspended branches restart also in a cancelled run: only they know what they have to
	// compensate.
	again := pos.Branches != nil && pos.Branches.Suspended && ctx.Err() != nil
	switch {
	case over && !again:
	case pos.Branches != nil:
		end, over, err = p.runBranches(ctx)
	case pos.Active != nil && pos.Active.CallID != "":
		end, over, err = p.runCall(ctx)
	case pos.Active != nil:
		end, over, err = p.runAgent(ctx)
	case !pos.Wake.IsZero():
		end, over = p.sleep(ctx)
		return end, over, nil
	default:
		return ending{}, false, errors.New("workflows: the pipeline's position has no action")
	}
	switch {
	case err != nil:
		return end, over, err
	case !over:
		end = ending{outcome: runs.OutcomeSuccess}
	}
	end, over = p.onStepEnd(ctx, end)
	return end, over, nil
}

// sleep waits for the next try of a step: until the position's wake time, or until the run's
// deadline, which ends the run. over reports that the run ends.
func (p interpreter) sleep(ctx workflow.Context) (end ending, over bool) {
	if workflow.Sleep(ctx, runs.Earlier(p.position.Wake, p.run.budget.Deadline).Sub(workflow.Now(ctx))) != nil {
		return p.onStepEnd(ctx, ending{outcome: runs.OutcomeCancelled})
	}
	if p.run.budget.Deadline.Before(p.position.Wake) {
		return p.onStepEnd(ctx, p.run.durationEnding())
	}
	p.position.Event = &pipeline.Event{Kind: pipeline.EventWoken}
	return ending{}, false
}

// runCall makes the tool call or approval of a step, and waits for its interrupts. An execution
// that was parked in between (Answer is nil, interrupts are held) only waits. over reports that end
// has how the step ended; otherwise the step succeeded. The error is nil except to continue as new.
func (p interpreter) runCall(ctx workflow.Context) (end ending, over bool, err error) {
	if answer := p.position.Answer; answer != nil {
		p.position.Answer = nil
		if end, over = p.run.makeCalls(ctx, *answer); over {
			return end, true, nil
		}
		p.run.turn++
	}
	if p.run.interrupts.held != nil {
		return p.run.continueHeld(ctx)
	}
	return ending{}, false, nil
}

// runAgent takes turns of a step's agent until the agent is done. A subagent's limits apply to it,
// and its turn counts are in the active step. It returns with over = true and how the step ended,
// except to continue as new.
func (p interpreter) runAgent(ctx workflow.Context) (end ending, over bool, err error) {
	for ; ; p.run.turn++ {
		if p.run.interrupts.held == nil {
			if active := p.position.Active; active.Turns >= active.Limits.Turns {
				return limitEnding(runs.CodeLimitTurns, "the agent reached its limit of %d turns", active.Limits.Turns), true, nil
			}
			if err := p.run.safePoint(ctx); err != nil {
				return ending{}, false, err
			}
			if end, over = p.run.checkSoftLimits(ctx); !over && p.run.interrupts.held == nil {
				p.position.Active.Turns++
				end, over = p.run.takeTurn(ctx)
			}
			if over {
				p.run.turn++
				return end, true, nil
			}
		}
		if p.run.interrupts.held != nil {
			if end, over, err := p.run.continueHeld(ctx); over || err != nil {
				return end, over, err
			}
		}
	}
}

// isDoneDespiteCancel reports whether the active step has ended, although the run is cancelled: no
// calls are left. Then the step counts as done, and is compensated for.
func (r *run) isDoneDespiteCancel(left int) bool { return r.activeStep() != nil && left == 0 }

// onStepEnd turns the end of a step into the event for the next advance, and leaves an event that
// branches have set. over reports that the run ends instead: with interrupts, because another
// execution owns it, or because it is cancelled or over its limits and has nothing to compensate.
func (p interpreter) onStepEnd(ctx workflow.Context, end ending) (_ ending, over bool) {
	pos := p.position
	if end.interrupts != nil {
		return end, true
	}
	p.run.interrupts.unhold() // the turn may have failed before its interrupts were announced
	switch {
	case end.code == runs.ErrorFenced, end.code == runs.ErrorLogLost:
		return end, true
	case end.endsPipeline(), end.outcome != runs.OutcomeSuccess && p.run.overdue(ctx):
		return p.compensate(ctx, end)
	case end.outcome == runs.OutcomeError:
		failure := end.failure()
		pos.Event = &pipeline.Event{Kind: pipeline.EventFailed, Failure: &failure}
	case pos.Event == nil:
		pos.Event, pos.Answered = &pipeline.Event{Kind: pipeline.EventDone}, p.run.answerMessage
		if p.run.child != nil && p.run.child.BranchPath == "" {
			pos.LastAnswer = p.run.answerMessage
		}
	}
	return ending{}, false
}

// endsPipeline reports whether no step may handle an ending: the run is cancelled, has used up its
// tokens or its money, or an approver refused to let it exceed a limit.
func (e ending) endsPipeline() bool {
	spent := e.code == runs.CodeLimitTokens || e.code == runs.CodeLimitCost
	return e.outcome == runs.OutcomeCancelled || spent && !e.ofStep || e.refused
}

// overdue reports whether the run's deadline has passed.
func (r *run) overdue(ctx workflow.Context) bool { return r.budget.IsOverdue(workflow.Now(ctx)) }

// durationEnding returns the ending of a run whose deadline has passed.
func (r *run) durationEnding() ending {
	return limitEnding(runs.CodeLimitDuration, "the run reached its limit of %s", r.in.Limits.Duration)
}

// timeout is the failure of a step whose deadline has passed.
var timeout = pipeline.Failure{Code: "timeout", Message: "the step took too long"}
