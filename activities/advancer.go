package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file is one pass of Advance: from the event with which the active step ended to the next
// action.

// advancer is one pass of Advance over the steps: it collects what the record will have. One
// goroutine uses it, for one pass. It owns nothing that must be closed: the activity owns the
// attempt.
type advancer struct {
	// The inputs. thread is the snapshot that the pass reads, set by readThread.
	activities *Activities
	in         runs.AdvanceInput
	place      stream.Place
	definition *agents.Definition
	thread     *snapshot.Snapshot
	// userText is the text of the last user message of the input: the task of an agent step without
	// a prompt. readInput sets it.
	userText string

	// The outputs: next is the answer to the workflow, events are for clients, stored is what
	// later steps need, result is the record with all of them.
	next   runs.AdvanceResult
	events []agui.Event
	// requiresSameState tells that a change depends on the value of the state, so the record is
	// written only if the state is unchanged.
	requiresSameState bool
	stored            storedAdvance
	result            stream.Result
}

// findAction finds the next action and fills the outputs. It writes nothing but a checkpoint. It
// does one of these:
//
//   - refuse an invalid step of a program, as a failure
//   - reopen the steps of a suspended pipeline, or close them because the child suspends
//   - evaluate an expression of a program, or its result
//   - advance the pipeline until it has an action
func (adv *advancer) findAction(ctx context.Context) error {
	if err := adv.readThread(ctx); err != nil {
		return err
	}
	if adv.in.Closes != "" {
		adv.addEvents(&agui.StepFinished{StepName: adv.in.Closes})
	}
	// The steps of a program come from its code at run time. Validation errors are failures that
	// the program receives.
	if adv.in.Tree != nil {
		if adv.next.Failed = validateStep(adv.definition); adv.next.Failed != nil {
			adv.next.TreePosition = adv.in.Position.TreePosition
			return nil
		}
	}
	switch {
	case adv.in.Resumes:
		return adv.reopenSteps()
	case len(adv.in.Suspended) > 0:
		return adv.suspendSteps()
	}
	// Later advances and model calls of this program step read the tree from this record.
	adv.stored.Tree = adv.in.Tree
	env, err := adv.buildEnv(ctx)
	if err != nil {
		return err
	}
	switch {
	case adv.in.Expression != "":
		return adv.evaluate(env)
	case adv.in.EvaluatesResult:
		return adv.evaluateResult(env)
	}
	return adv.advanceUntilAction(ctx, env)
}

// readThread reads the snapshot of the thread. It must contain the last record of the agent's lane,
// of the child's beginning, and of the branches that have ended.
func (adv *advancer) readThread(ctx context.Context) (err error) {
	after := max(adv.in.After, adv.place.Since)
	if branches := adv.in.Position.Branches; branches != nil {
		after = max(after, branches.HighestRecord)
	}
	if adv.thread, err = adv.activities.Snapshots.Latest(ctx, adv.place.Run.Thread, after); err != nil {
		return err
	}
	// Without a checkpoint later readers fold more records, so a failure is ignored.
	_ = adv.activities.Snapshots.Checkpoint(ctx, adv.place.Run.Thread, adv.thread)
	return nil
}

// advanceUntilAction applies the event of the active step, and prepares the next action. A step
// that lacks an agent or a tool for good has no action: it fails here, so that its onError steps
// may run, and the loop continues with that failure as the event.
func (adv *advancer) advanceUntilAction(ctx context.Context, env pipeline.Env) error {
	event, err := adv.buildEvent(ctx)
	if err != nil {
		return err
	}
	adv.next.TreePosition = adv.in.Position.TreePosition
	if err := adv.readDetails(ctx, event); err != nil {
		return err
	}
	for {
		advanced, err := pipeline.Advance(adv.definition, adv.next.TreePosition, event, env)
		if err != nil {
			return err
		}
		// Expressions of the next round of the loop see the changes of this one.
		for _, c := range advanced.Changes {
			adv.addChange(c)
			if env.State, err = applyChange(env.State, c); err != nil {
				return err
			}
		}
		adv.next.TreePosition = advanced.Position
		adv.requiresSameState = adv.requiresSameState || advanced.RequiresSameState
		// Compensations may need the outputs of the steps that this advance has finished.
		adv.storeDone(advanced.Done)
		adv.storeResult(advanced.Result)
		err = adv.beginAction(ctx, advanced.Action)
		failure := unobtainableFailure(err)
		if failure == nil {
			return err
		}
		event = pipeline.Event{Kind: pipeline.EventFailed, Failure: failure}
	}
}

// storeResult stores the result of the agent; nil = there is none.
func (adv *advancer) storeResult(result json.RawMessage) {
	if result != nil {
		adv.stored.Result, adv.next.HasResult = result, true
	}
}

// maxReasonBytes bounds the message about an invalid step, in bytes, because it becomes part of the
// history.
const maxReasonBytes = 500

// validateStep validates the step of a program and returns why it is invalid; nil = it is valid. A
// tree of a program has one step.
func validateStep(d *agents.Definition) *pipeline.Failure {
	err := d.ValidateStep(d.Steps[0])
	if err == nil {
		return nil
	}
	reason := strings.ReplaceAll(err.Error(), "\n", "; ")
	return &pipeline.Failure{Code: "invalid_step", Message: strings.ToValidUTF8(reason[:min(len(reason), maxReasonBytes)], "")}
}

// applyChange returns the state after the patch of a change; changes that begin or end steps have
// none. An error is a defect: the interpreter makes patches that apply.
func applyChange(state json.RawMessage, c pipeline.Change) (json.RawMessage, error) {
	if c.Patch == nil {
		return state, nil
	}
	if len(state) == 0 {
		state = json.RawMessage("null")
	}
	next, err := agui.Patch(state, c.Patch)
	if err != nil {
		return nil, fmt.Errorf("activities: change the state: %w", err)
	}
	return next, nil
}

// unobtainableFailure returns the failure of a step that cannot have the agent or tool that it
// needs: the agent is not published, the grace for a tool is over, or subagents would nest too deep.
// nil = err is another error, or the activity is retried within the grace.
func unobtainableFailure(err error) *pipeline.Failure {
	var lacking *lackingError
	switch {
	case errors.Is(err, errTooDeep):
		return &pipeline.Failure{Code: runs.CodeLimitSubagents, Message: fmt.Sprintf("subagents would be nested deeper than %d levels", runs.MaxDepth)}
	case errors.Is(err, catalog.ErrUnknownAgent):
		return &pipeline.Failure{Code: codeAgentUnavailable, Message: unpublished(err)}
	case errors.As(err, &lacking) && lacking.retry == 0:
		return &pipeline.Failure{Code: "tool_unavailable", Message: "tools of the step are not available: " + lacking.what()}
	}
	return nil
}

// addEvents adds events to the record.
func (adv *advancer) addEvents(events ...agui.Event) { adv.events = append(adv.events, events...) }

// addChange adds the event for a change: a step begins or ends, or the state changes.
func (adv *advancer) addChange(c pipeline.Change) {
	switch {
	case c.Started != "":
		adv.addEvents(&agui.StepStarted{StepName: c.Started})
	case c.Finished != "":
		if c.Path != "" {
			adv.result.Finished = append(adv.result.Finished, stream.FinishedStep{Index: len(adv.events), Path: c.Path})
		}
		adv.addEvents(&agui.StepFinished{StepName: c.Finished})
	default:
		adv.addEvents(&agui.StateDelta{Delta: c.Patch})
	}
}

// reopenSteps begins the open steps again for clients, in the run or child that continues a
// suspended one. The position stays the same.
func (adv *advancer) reopenSteps() error {
	open, err := pipeline.OpenStepNames(adv.definition, adv.in.Position.TreePosition)
	for _, name := range open {
		adv.addEvents(&agui.StepStarted{StepName: name})
	}
	adv.next.TreePosition = adv.in.Position.TreePosition
	return err
}

// suspendSteps ends the open steps of a child that ends with its interrupts, the innermost first,
// and reports a branch as suspended. The next run reopens them.
func (adv *advancer) suspendSteps() error {
	open, err := pipeline.OpenStepNames(adv.definition, adv.in.Position.TreePosition)
	for _, name := range slices.Backward(open) {
		adv.addEvents(&agui.StepFinished{StepName: name})
	}
	adv.next.TreePosition = adv.in.Position.TreePosition
	if adv.in.Child.BranchPath == "" {
		// The activity AnswerSubagent writes the end of a subagent, with the step of its call.
		return err
	}
	outcome := &agui.SubagentOutcome{Type: agui.SubagentSuspended}
	for _, call := range adv.in.Suspended {
		outcome.InterruptIDs = append(outcome.InterruptIDs, interruptID(adv.place.Run, call))
	}
	adv.addEvents(&agui.SubagentFinished{SubagentRunID: adv.place.Subagent, Outcome: outcome})
	return err
}

// beginAction prepares the next action for the workflow, which carries it out. Without an action
// the pipeline has ended, or has failed with action.Failed. The error may be one for which
// unobtainableFailure returns a failure.
func (adv *advancer) beginAction(ctx context.Context, action pipeline.Action) error {
	switch {
	case action.Agent != nil:
		return adv.beginAgent(ctx, action)
	case action.Tool != nil, action.Approve != nil:
		return adv.beginCall(ctx, action)
	case action.Branches != nil:
		return adv.beginBranches(ctx, action)
	case action.Sleep > 0:
		adv.next.Sleep = action.Sleep
		return nil
	}
	// No action is left: the pipeline has ended.
	adv.next.Failed = action.Failed
	adv.endBranch()
	return nil
}

// endBranch adds the event that ends a branch, and stores what its compensation needs. Other
// pipelines are ended by Finish or AnswerSubagent.
func (adv *advancer) endBranch() {
	child := adv.in.Child
	if child == nil || child.BranchPath == "" {
		return
	}
	if failed := adv.next.Failed; failed != nil {
		adv.addEvents(&agui.SubagentError{SubagentRunID: adv.place.Subagent, Message: failed.Text(), Code: failed.Code})
		return
	}
	adv.stored.Ended = pipeline.Ended{Undo: adv.next.TreePosition.Undo, Records: adv.next.TreePosition.Records}
	adv.addEvents(&agui.SubagentFinished{SubagentRunID: adv.place.Subagent, Outcome: &agui.SubagentOutcome{Type: agui.SubagentSuccess}})
}

// readDetails sets the details of the failures that steps may use. A detail may have content, so
// the workflow carries only the number of the record that has it.
func (adv *advancer) readDetails(ctx context.Context, event pipeline.Event) error {
	failures := adv.next.TreePosition.Failures()
	if event.Failure != nil {
		failures = append(failures, event.Failure)
	}
	for i := range event.Branches {
		failures = append(failures, &event.Branches[i].Failure)
	}
	details := map[uint64]string{} // branches with the same failure share a record
	for _, f := range failures {
		if f.Record == 0 {
			continue
		}
		detail, ok := details[f.Record]
		if !ok {
			var err error
			if detail, err = adv.activities.detail(ctx, adv.place.Run.Thread, f.Record); err != nil {
				return err
			}
			details[f.Record] = detail
		}
		f.Detail = detail
	}
	return nil
}
