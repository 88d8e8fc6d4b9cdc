package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// A run that has passed a soft limit asks approvers before its next turn whether it may continue.
// The question is an interrupt with a call of the tool "approve". The run waits for the decision
// like for any other, and continues, or ends with the limit's code. Limits count everything that is
// done for one input, in any number of AG-UI runs.
//
// Only the run's own agent asks. Usage of subagents and branches counts when they have ended.

// stepLimit is the name in STEP_STARTED of the step that asks approvers about a limit.
const stepLimit = "limit"

// exceededLimit returns the first soft limit that the run has passed; nil = none, or the run
// compensates.
func (r *run) exceededLimit(ctx workflow.Context) *runs.ExceededLimit {
	if r.isCompensating() {
		return nil
	}
	return r.budget.Exceeded(r.in.Limits, workflow.Now(ctx))
}

// checkSoftLimits checks hard and soft limits before a turn. If the run has passed a soft limit, it
// asks approvers; in a held run interrupts.held has the question then, and it takes the number of a
// turn. The ending is zero, unless the run ends: with that interrupt, or because a hard limit is
// passed.
func (r *run) checkSoftLimits(ctx workflow.Context) ending {
	if end := r.checkLimits(); end.isOver() {
		return end
	}
	x := r.exceededLimit(ctx)
	// Of all limits only that of time depends on when a lost workflow task is repeated. A turn that the
	// lost task has begun comes before the question.
	if x == nil || x.Code == runs.CodeLimitDuration && r.isLogAhead(ctx, nil) {
		return ending{}
	}
	return r.interruptForLimit(ctx, *x)
}

// interruptForLimit asks approvers about a limit (limit.interrupt writes the call to the log). A
// held run announces the interrupt and returns a zero ending; another run ends with it.
func (r *run) interruptForLimit(ctx workflow.Context, x runs.ExceededLimit) ending {
	in := runs.LimitInterrupt{Step: r.limitStep(r.step(r.turn, "limit", "")), Exceeded: x}
	if !r.log.HasBegun() {
		in.Beginning = *r.inputBeginning()
	}
	var answer runs.ModelAnswer
	asking := workflow.WithActivityOptions(ctx, r.options(ctx, "limit"))
	if err := workflow.ExecuteActivity(asking, runs.ActivityLimitInterrupt, in).Get(ctx, &answer); err != nil {
		r.noteFailedStep(in.Step, nil)
		return r.endingFromError(ctx, err)
	}
	r.log.NoteRecord(answer.Seq, in.Name)
	interrupts := r.interruptsOfAnswer(ctx, answer)
	interrupts.Agent, interrupts.Revision = r.in.Agent, r.in.Revision
	interrupts.Step, interrupts.Tree = pipeline.LimitPath, 0
	interrupts.Exceeded = &x
	if !r.admitInterrupts(interrupts) {
		return tooManyInterruptsEnding
	}
	return r.waitFor(ctx, interrupts)
}

// limitStep makes a step the one that asks approvers about a limit. It belongs to the run's own
// agent, also within a pipeline.
func (r *run) limitStep(s runs.Step) runs.Step {
	s.Agent, s.Revision, s.Name = r.in.Agent, r.in.Revision, r.stepName(stepLimit)
	s.PipelineStep = &runs.StepRef{Path: pipeline.LimitPath, Name: stepLimit, Inline: true, Scope: runs.ScopeLimit}
	return s
}

// applyLimitDecision applies the decision about a limit: the run may continue up to the approved
// amount, or ends with the limit's code. The ending is zero if the run continues.
func (r *run) applyLimitDecision(ctx workflow.Context, set *runs.Interrupts, step runs.Step) ending {
	interrupts := &runs.Interrupts{MessageID: set.MessageID}
	if end := r.callTools(ctx, r.limitStep(step), decidedCalls(set), interrupts); end.isOver() {
		return end
	}
	d, x := set.Items[0].Decision, *set.Exceeded
	if !d.Approves() {
		why := "the approver did not let the run continue"
		if d.Kind == runs.DecisionExpire {
			why = "the approval to continue the run expired"
		}
		return ending{outcome: runs.OutcomeError, code: x.Code, message: why, refused: true}
	}
	if d.Allowed > 0 {
		x.Allowed = d.Allowed
	}
	r.budget.Allow(x)
	return ending{}
}

// checkBeforeBranches asks approvers, before branches begin, whether the run may continue, and
// blocks until they decide: branches cannot ask. It repeats until no soft limit is passed. The
// ending is zero if the run continues. The error is nil except to continue as new.
func (p pipelineExecutor) checkBeforeBranches(ctx workflow.Context) (end ending, err error) {
	for {
		if p.run.interrupts.held == nil {
			x := p.run.exceededLimit(ctx)
			if x == nil {
				x, p.position.Exceeded = p.position.Exceeded, nil
			}
			if x == nil {
				return ending{}, nil
			}
			if end := p.run.interruptForLimit(ctx, *x); end.isOver() {
				return end, nil
			}
		}
		if end, err = p.run.continueHeld(ctx); end.isOver() || err != nil {
			return end, err
		}
		p.run.turn++
	}
}
