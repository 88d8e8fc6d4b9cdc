package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// A pipeline alternates between advances, which find the next step, and steps:
//
//	advance ──► agent ──► advance ──► call ──► advance ──► branches ──► advance ──► end
//	   │         turns       │         one        │         children
//	   └ records how the step before ended, changes the state, and evaluates what is next
//
// The workflow does not know the steps. The activity pipeline.advance has the definition and the
// state; the workflow has the cursor, does what the activity returns, and reports how it ended. So
// a history has what was done, and no definition, and no expression is evaluated here. Before each
// advance the run may pause or continue as new: the position has everything that the next execution
// needs. Where nothing can come in between, the activity of a tool call makes the next advance, too
// (chained_advance.go).

// endingOf returns how the run ends when it has compensated for what was done.
func endingOf(t *runs.PendingEnd) ending {
	if t.Outcome == runs.OutcomeCancelled {
		return ending{outcome: t.Outcome}
	}
	end := failureEnding(t.Failure)
	end.outcome = t.Outcome
	return end
}

// interpreter executes the steps of an agent that is a pipeline, or the step that a program does.
// It has no state of its own: what lasts between two steps is the run's pipelineState.
type interpreter struct {
	run *run
	*pipelineState
}

// interpreter returns the interpreter of the run's steps.
func (r *run) interpreter() interpreter { return interpreter{r, &r.pipeline} }

// restorePosition takes the position from the execution or the run before this one, or sets it to
// the beginning.
func (r *run) restorePosition() {
	switch {
	case r.pipeline.position != nil:
	case r.in.Resume != nil && r.in.Resume.Position != nil:
		r.pipeline.position = r.in.Resume.Position
		r.pipeline.position.Advances = 0
	case r.in.Steps:
		r.pipeline.position = &runs.Position{Origin: r.in.Run.ID, Input: r.in.Input, Child: r.child.branch(), Event: &pipeline.Event{Kind: pipeline.EventBegun}}
		r.pipeline.position.Cursor.Home = r.outputPrefix()
	}
	if r.pipeline.position != nil {
		r.answerMessage = r.pipeline.position.LastAnswer
	}
}

// outputPrefix begins the names of a subagent's outputs in the state, so that they are apart from
// those of other agents.
func (r *run) outputPrefix() string {
	if r.child == nil {
		return ""
	}
	return agents.AgentPrefix + r.child.CallID
}

// steps runs the pipeline to its end. The error is nil except to continue as new.
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
		ahead := p.chained != nil // then the safe point is behind the advance
		if !ahead {
			if err := p.run.safePoint(p.compensationCtx(ctx)); err != nil {
				return ending{}, err
			}
		}
		next, err := p.advance(p.compensationCtx(ctx))
		switch {
		case err != nil:
			return p.run.failure(p.compensationCtx(ctx), err), nil
		case next.IsEnd():
			return p.endOfSteps(ctx, next), nil
		case ahead:
			if err := p.run.safePoint(p.compensationCtx(ctx)); err != nil {
				return ending{}, err
			}
		}
	}
}

// compensationCtx returns the context for the next step: a cancel of the run does not end
// compensation.
func (p interpreter) compensationCtx(ctx workflow.Context) workflow.Context {
	if !p.run.isCompensating() {
		return ctx
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return ctx
}

// endOfSteps returns how the run ends after its last step.
func (p interpreter) endOfSteps(ctx workflow.Context, last runs.Advanced) ending {
	switch then := p.position.End; {
	case then != nil:
		return endingOf(then)
	case last.Failed != nil && ctx.Err() != nil:
		return ending{outcome: runs.OutcomeCancelled}
	case last.Failed != nil:
		return failureEnding(*last.Failed)
	}
	return ending{outcome: runs.OutcomeSuccess}
}

// noteFailedStep notes a step that failed on the main lane of a pipeline, which continues after it.
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

// firstStepID returns the ID of the run's first step.
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

// reopen begins a run that continues a pipeline, and applies the decisions about its interrupts.
// over tells that the run ends.
func (p interpreter) reopen(ctx workflow.Context) (end ending, over bool) {
	in := runs.Advance{Step: p.run.ownStep(stepReopen), Position: *p.position, Resumes: true}
	opening, _ := workflow.NewDisconnectedContext(ctx) // what is done about a cancel comes behind the beginning
	var next runs.Advanced
	if err := p.runAdvance(opening, in, &next); err != nil {
		return p.run.failure(ctx, err), true
	}
	w := p.run.in.Resume
	switch {
	case p.position.Branches != nil && w.Exceeded == nil:
		return ending{}, false // its branches have the calls
	case w.FailsRun():
		return p.onStepEnd(ctx, ending{outcome: runs.OutcomeError, code: runs.CodeApprovalExpired, message: "nobody decided in time"})
	}
	if calls := decidedCalls(w); len(calls) > 0 {
		if end, over = p.run.applyDecisions(ctx, w, p.run.step(p.run.turn, stepTools, stepTools)); over {
			return p.onStepEnd(ctx, end)
		}
	}
	if l := p.position.Active; l != nil && l.CallID != "" {
		return p.onStepEnd(ctx, ending{outcome: runs.OutcomeSuccess})
	}
	p.run.turn++
	return ending{}, false
}

// runActiveStep runs the step that the pipeline has reached. over tells that the run ends. The
// error is nil except to continue as new.
func (p interpreter) runActiveStep(ctx workflow.Context) (end ending, over bool, err error) {
	w := p.position
	end, over = p.run.exhausted(ctx)
	again := w.Branches != nil && w.Branches.Suspended && ctx.Err() != nil // branches that have done something
	switch {
	case over && !again:
	case w.Branches != nil:
		end, over, err = p.runBranches(ctx)
	case w.Active != nil && w.Active.CallID != "":
		end, over, err = p.runCall(ctx)
	case w.Active != nil:
		end, over, err = p.runAgent(ctx)
	default:
		end, over = p.sleep(ctx)
		return end, over, nil
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

// sleep waits until the position's wake time, or until the run's deadline.
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

// runCall makes the call of a step, unless it waits already, and waits for its interrupts.
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

// runAgent runs the agent of a step, turn by turn.
func (p interpreter) runAgent(ctx workflow.Context) (end ending, over bool, err error) {
	for ; ; p.run.turn++ {
		if p.run.interrupts.held == nil {
			if l := p.position.Active; l.Turns >= l.Limits.Turns {
				return limit(runs.CodeLimitTurns, "the agent reached its limit of %d turns", l.Limits.Turns), true, nil
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

// isDoneDespiteCancel reports whether the active step is done, although the run is cancelled: then
// it is compensated for, too.
func (r *run) isDoneDespiteCancel(left int) bool { return r.activeStep() != nil && left == 0 }

// onStepEnd turns the end of a step into the event for the next advance. over tells that the run
// ends instead.
func (p interpreter) onStepEnd(ctx workflow.Context, end ending) (_ ending, over bool) {
	w := p.position
	if end.waits != nil {
		return end, true
	}
	p.run.interrupts.unhold() // the turn ended before its interrupts were told
	switch {
	case end.code == runs.ErrorFenced, end.code == runs.ErrorLogLost:
		return end, true
	case end.outcome == runs.OutcomeCancelled, !end.ofStep && (end.code == runs.CodeLimitTokens || end.code == runs.CodeLimitCost), end.refused, end.outcome != runs.OutcomeSuccess && p.run.overdue(ctx):
		return p.compensate(ctx, end)
	case end.outcome == runs.OutcomeError:
		why := end.why()
		w.Event = &pipeline.Event{Kind: pipeline.EventFailed, Failure: &why}
	case w.Event == nil:
		w.Event, w.Answered = &pipeline.Event{Kind: pipeline.EventDone}, p.run.answerMessage
		if p.run.child != nil && p.run.child.BranchPath == "" {
			w.LastAnswer = p.run.answerMessage
		}
	}
	return ending{}, false
}

func (r *run) overdue(ctx workflow.Context) bool { return r.budget.IsOverdue(workflow.Now(ctx)) }

func (r *run) durationEnding() ending {
	return limit(runs.CodeLimitDuration, "the run reached its limit of %s", r.in.Limits.Duration)
}

var timeout = pipeline.Failure{Code: "timeout", Message: "the step took too long"}
