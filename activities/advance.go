package activities

import (
	"context"
	"errors"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// This file is the activity that advances a pipeline or the steps of a program. Package
// agents/pipeline finds the next action; it is pure. The activity gives it the state, the
// conversation and the event, and writes what it decides. advancer.go finds the action,
// active_step.go begins the next step, outcome.go reads how the last one ended, environment.go has
// the variables of expressions, advance_result.go writes the record, step_results.go and
// advance_record.go have what the log keeps for later steps.

// Advance is pipeline.advance.v1: it takes the event with which the active step ended, changes the
// state, and finds the next action. It writes one record with all of that: the steps that begin and
// end, the changes of the state, and the tool call or approval of the next step. It calls no model
// and no tool. A later attempt finds the record and returns its answer, or nothing was changed.
func (a *Activities) Advance(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
	return executeStep(ctx, a, in.Step, func(ctx context.Context) (runs.AdvanceResult, error) {
		next, err := a.advance(ctx, in)
		if err == nil {
			return next, nil
		}
		done, err := a.doneBefore(ctx, agentPlace(in.Step, in.ID), err)
		if err != nil {
			return runs.AdvanceResult{}, err
		}
		return recordedAdvance(ctx, done, in.Tree != nil)
	})
}

// advance takes over what failed steps left, opens the run or child if this is its first step, and
// finds the next action. If another branch has changed the state on which the pass depends, a new
// pass starts from the beginning.
func (a *Activities) advance(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
	place := agentPlace(in.Step, in.ID)
	// A repeated workflow task must not take the lanes from the steps that have followed this one.
	if in.FailedStep != nil || len(in.Unfinished) > 0 {
		if done, err := a.Log.Done(ctx, place); err != nil {
			return runs.AdvanceResult{}, err
		} else if done != nil {
			return recordedAdvance(ctx, done, in.Tree != nil)
		}
	}
	// Lanes whose activity failed may have late attempts. They are fenced before the result is
	// judged. Nothing else reports what their subagents have used.
	usage, err := a.supersedeLanes(ctx, place, in.Unfinished)
	if err != nil {
		return runs.AdvanceResult{}, err
	}
	if in.After, err = a.openAfterFailure(ctx, place, in); err != nil {
		return runs.AdvanceResult{}, err
	}
	// The model calls of the failed step are counted here, because its activity returned no answer.
	if in.FailedStep != nil {
		unreportedUsage, err := a.unreported(ctx, place)
		if err != nil {
			return runs.AdvanceResult{}, err
		}
		usage = runs.Sum(usage, unreportedUsage)
	}
	if place.After, err = a.openPipeline(ctx, place, in); err != nil {
		return runs.AdvanceResult{}, err
	}
	attempt, done, err := a.Log.Begin(ctx, place)
	if err != nil {
		return runs.AdvanceResult{}, err
	}
	if done != nil {
		return recordedAdvance(ctx, done, in.Tree != nil)
	}
	defer attempt.Close()
	d, err := a.definitionWithSteps(ctx, in)
	if err != nil {
		return runs.AdvanceResult{}, err
	}
	// Each pass has a new advancer, because a pass whose writes were refused as stale has changed
	// its own.
	for {
		adv := &advancer{activities: a, in: in, place: place, definition: d, next: runs.AdvanceResult{Usage: usage}}
		if err := adv.findAction(ctx); err != nil {
			return runs.AdvanceResult{}, a.reportFailure(ctx, attempt, err)
		}
		next, err := adv.finish(ctx, attempt)
		if !errors.Is(err, stream.ErrStale) {
			return next, err
		}
	}
}

// openAfterFailure returns the last record of the lane after which this step writes. If the step
// before has failed, its activity may never have opened it. Then openAfterFailure opens it, with
// its steered messages, and retracts what an unfinished attempt left.
func (a *Activities) openAfterFailure(ctx context.Context, p stream.Place, in runs.AdvanceInput) (uint64, error) {
	failed := in.FailedStep
	if failed == nil {
		return in.After, nil
	}
	failedPlace := p
	failedPlace.Step, failedPlace.After = failed.ID, failed.After
	var events []agui.Event
	if failed.Closes != "" {
		events = append(events, &agui.StepFinished{StepName: failed.Closes})
	}
	return a.Log.OpenAfterFailure(ctx, p, failedPlace, steeringNote(failed.PipelineStep, failed.Steered), append(events, &agui.StepStarted{StepName: failed.Name})...)
}

// definitionWithSteps returns the definition with the steps of the position: those of the agent, or
// those of its program. in.Tree has the steps of a program in their first advance, the
// log has them later.
func (a *Activities) definitionWithSteps(ctx context.Context, in runs.AdvanceInput) (*agents.Definition, error) {
	d, err := a.Agents.Revision(ctx, in.Run.Tenant, in.Agent, in.Revision)
	if err != nil {
		return nil, err
	}
	if in.Tree != nil {
		return pipeline.WithTree(d, in.Tree)
	}
	return a.withTree(ctx, d, runOf(in.Run).Thread, in.Position.Tree)
}

// openPipeline writes the first record of the run, of the subagent or of the branch, if its steps
// begin with this advance. It returns the last record of the lane for Begin.
func (a *Activities) openPipeline(ctx context.Context, p stream.Place, in runs.AdvanceInput) (uint64, error) {
	switch child := in.Child; {
	case in.Announces != nil:
		return a.announceSubagent(ctx, p, in.Step, *in.Announces)
	case in.Beginning != (runs.Beginning{}):
		opening := runOpening(in.Agent, in.Revision, in.Beginning)
		// The outputs of the run before, or of the fork's origin, stay in the state, whatever the input
		// says: later steps and compensations use them.
		if in.Resumes || in.Position.TreePosition.After != "" {
			opening.Keeps = pipeline.Outputs
		}
		return a.Snapshots.OpenRun(ctx, p, opening)
	case child != nil && child.BranchPath != "" && in.After == 0:
		started := &agui.SubagentStarted{SubagentRunID: p.Subagent, Name: child.Name}
		if child.ParentCallID != "" {
			started.ParentSubagentRunID = subagentID(child.ParentCallID)
		}
		return a.Log.OpenStep(ctx, p, nil, started)
	}
	return in.After, nil
}
