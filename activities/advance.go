package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file is the activity that advances a pipeline or the steps of a program. Package
// agents/pipeline finds the next action; it is pure. The activity gives it the state, the
// conversation and the event, and writes what it decides. active_step.go begins the next step,
// outcome.go reads how the last one ended, environment.go has the variables of expressions, done.go
// and stored_advance.go what the log keeps for later steps.

// Advance is pipeline.advance.v1: it takes the event with which the active step ended, changes the
// state, and finds the next action. It writes one record with all of that: the steps that begin and
// end, the changes of the state, and the tool call or approval of the next step. It calls no model
// and no tool. A later attempt finds the record and returns its answer, or nothing was changed.
func (a *Activities) Advance(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
	return runShortStep(inStep(ctx, in.Step), a, func(ctx context.Context) (runs.AdvanceResult, error) { return a.advance(ctx, in) })
}

// advance takes over what failed steps left, opens the run or child if this is its first step, and
// walks until the record is written. A walk is repeated from the beginning if another branch has
// changed the state that it depends on. CallTool calls it for a chained advance.
func (a *Activities) advance(ctx context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) {
	place := agentPlace(in.Step, in.ID)
	// Lanes whose activity failed may have late attempts. They are fenced before the result is
	// judged. Nothing else reports what their subagents have used.
	used, err := a.takeOver(ctx, place, in.Unfinished)
	if err != nil {
		return runs.AdvanceResult{}, err
	}
	if in.After, err = a.openAfterFailure(ctx, place, in); err != nil {
		return runs.AdvanceResult{}, err
	}
	// The model calls of the failed step are counted here, because its activity returned no answer.
	if in.FailedStep != nil {
		more, err := a.unreported(ctx, place)
		if err != nil {
			return runs.AdvanceResult{}, err
		}
		used = runs.Sum(used, more)
	}
	if place.After, err = a.openWalk(ctx, place, in); err != nil {
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
		adv := &advancer{activities: a, in: in, place: place, definition: d, next: runs.AdvanceResult{CallEnded: in.AfterCall, Usage: used}}
		if err := adv.walk(ctx); err != nil {
			return runs.AdvanceResult{}, a.tellLacking(ctx, attempt, err)
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
	b := in.FailedStep
	if b == nil {
		return in.After, nil
	}
	failed := p
	failed.Step, failed.After = b.ID, b.After
	var events []agui.Event
	if b.Closes != "" {
		events = append(events, &agui.StepFinished{StepName: b.Closes})
	}
	return a.Log.OpenAfterFailure(ctx, p, failed, steering(b.Place, b.Steered), append(events, &agui.StepStarted{StepName: b.Name})...)
}

// definitionWithSteps returns the definition with the steps of the position: those of the agent, or
// those that its program has begun. in.Tree has the steps of a program in their first advance, the
// log has them later.
func (a *Activities) definitionWithSteps(ctx context.Context, in runs.AdvanceInput) (*agents.Definition, error) {
	d, err := a.Agents.Revision(ctx, in.Agent, in.Revision)
	if err != nil {
		return nil, err
	}
	if in.Tree != nil {
		return pipeline.WithTree(d, in.Tree)
	}
	return a.withTree(ctx, d, runOf(in.Run).Thread, in.Position.Tree)
}

// openWalk writes the first record of the run, of the subagent or of the branch, if its steps begin
// with this advance. It returns the last record of the lane for Begin.
func (a *Activities) openWalk(ctx context.Context, p stream.Place, in runs.AdvanceInput) (uint64, error) {
	switch b := in.Child; {
	case in.Announces != nil:
		return a.announce(ctx, p, in.Step, *in.Announces)
	case in.Beginning != (runs.Beginning{}):
		o := opening(in.Agent, in.Revision, in.Beginning)
		// The outputs of the run before stay in the state, whatever the input says: later steps and
		// compensations use them.
		if in.Resumes {
			o.Keeps = pipeline.Outputs
		}
		return a.Snapshots.OpenRun(ctx, p, o)
	case b != nil && b.BranchPath != "" && in.After == 0:
		started := &agui.SubagentStarted{SubagentRunID: p.Subagent, Name: b.Name}
		if b.ParentCallID != "" {
			started.ParentSubagentRunID = subagentID(b.ParentCallID)
		}
		return a.Log.OpenStep(ctx, p, nil, started)
	}
	return in.After, nil
}

// advancer is one try of Advance: it collects what the record will have. One goroutine uses it, for
// one walk. It owns nothing that must be closed: the activity owns the attempt.
type advancer struct {
	// The inputs. thread is the snapshot that the walk reads, set by walk.
	activities *Activities
	in         runs.AdvanceInput
	place      stream.Place
	definition *agents.Definition
	thread     *snapshot.Snapshot
	// userText is the text of the last user message of the input: the task of an agent step without
	// a prompt. input sets it.
	userText string

	// The outputs: next is the answer to the workflow, events are for clients, stored is what
	// later steps need, result is the record with all of them.
	next   runs.AdvanceResult
	events []agui.Event
	// sets tells that a change depends on the value of the state, so the record is written only if
	// the state is unchanged.
	sets   bool
	stored storedAdvance
	result stream.Result
}

// walk finds the next action and fills the outputs. It writes nothing but a checkpoint. It does one
// of these:
//
//   - refuse an invalid step of a program, as a failure
//   - reopen the steps of a suspended pipeline, or close them because the child suspends
//   - evaluate an expression of a program
//   - advance
//
// A step that lacks an agent or a tool for good fails within the walk, so that its onError steps
// may run. The loop continues with that failure as the event.
func (a *advancer) walk(ctx context.Context) (err error) {
	// The snapshot must contain the last record of the agent's lane, of the child's beginning, and
	// of the branches that have ended.
	after := max(a.in.After, a.place.Since)
	if f := a.in.Position.Branches; f != nil {
		after = max(after, f.HighestRecord)
	}
	if a.thread, err = a.activities.Snapshots.Latest(ctx, a.place.Run.Thread, after); err != nil {
		return err
	}
	// Without a checkpoint later readers fold more records, so a failure is ignored.
	_ = a.activities.Snapshots.Checkpoint(ctx, a.place.Run.Thread, a.thread)
	if a.in.Closes != "" {
		a.tell(&agui.StepFinished{StepName: a.in.Closes})
	}
	// The steps of a program come from its code at run time. Validation errors are failures that
	// the program receives.
	if a.in.Tree != nil {
		if a.next.Failed = invalidStep(a.definition); a.next.Failed != nil {
			a.next.Cursor = a.in.Position.Cursor
			return nil
		}
	}
	switch {
	case a.in.Resumes:
		return a.reopen()
	case len(a.in.Suspended) > 0:
		return a.suspend()
	}
	// Later advances and model calls of this program step read the tree from this record.
	a.stored.Tree = a.in.Tree
	env, err := a.env(ctx)
	if err != nil {
		return err
	}
	if a.in.Expression != "" {
		return a.evaluate(env)
	}
	event, err := a.event(ctx)
	if err != nil {
		return err
	}
	a.next.Cursor = a.in.Position.Cursor
	if err := a.readDetails(ctx, event); err != nil {
		return err
	}
	for {
		move, err := pipeline.Advance(a.definition, a.next.Cursor, event, env)
		if err != nil {
			return err
		}
		// Expressions of the next round of the loop see the changes of this one.
		for _, c := range move.Changes {
			a.change(c)
			if env.State, err = applyChange(env.State, c); err != nil {
				return err
			}
		}
		a.next.Cursor, a.sets = move.Cursor, a.sets || move.Sets
		// Compensations may need the outputs of the steps that this move has finished.
		a.storeDone(move.Done)
		err = a.answerAction(ctx, move.Action)
		why := unobtainable(err)
		if why == nil {
			return err
		}
		event = pipeline.Event{Kind: pipeline.EventFailed, Failure: why}
	}
}

// maxReason bounds the message about an invalid step, in bytes, because it becomes part of the
// history.
const maxReason = 500

// invalidStep validates the step of a program and returns why it is invalid; nil = it is valid. A
// tree of a program has one step.
func invalidStep(d *agents.Definition) *pipeline.Failure {
	err := d.ValidateStep(d.Steps[0])
	if err == nil {
		return nil
	}
	why := strings.ReplaceAll(err.Error(), "\n", "; ")
	return &pipeline.Failure{Code: "invalid_step", Message: strings.ToValidUTF8(why[:min(len(why), maxReason)], "")}
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

// unobtainable returns the failure of a step that cannot have the agent or tool that it needs: the
// grace is over, or subagents would nest too deep. nil = err is another error, or the activity is
// retried within the grace.
func unobtainable(err error) *pipeline.Failure {
	var lacking *lackingError
	switch {
	case errors.Is(err, errTooDeep):
		return &pipeline.Failure{Code: runs.CodeLimitSubagents, Message: fmt.Sprintf("subagents would be nested deeper than %d levels", runs.MaxDepth)}
	case errors.As(err, &lacking) && lacking.retry == 0:
		return &pipeline.Failure{Code: "tool_unavailable", Message: "tools of the step are not available: " + lacking.what()}
	}
	return nil
}

// tell adds events to the record.
func (a *advancer) tell(events ...agui.Event) { a.events = append(a.events, events...) }

// change adds the event for a change: a step begins or ends, or the state changes.
func (a *advancer) change(c pipeline.Change) {
	switch {
	case c.Started != "":
		a.tell(&agui.StepStarted{StepName: c.Started})
	case c.Finished != "":
		a.tell(&agui.StepFinished{StepName: c.Finished})
	default:
		a.tell(&agui.StateDelta{Delta: c.Patch})
	}
}

// reopen begins the open steps again for clients, in the run or child that continues a suspended
// one. The position stays the same.
func (a *advancer) reopen() error {
	open, err := pipeline.OpenStepNames(a.definition, a.in.Position.Cursor)
	for _, name := range open {
		a.tell(&agui.StepStarted{StepName: name})
	}
	a.next.Cursor = a.in.Position.Cursor
	return err
}

// suspend ends the open steps of a child that ends with its interrupts, the innermost first, and
// reports a branch as suspended. The next run reopens them.
func (a *advancer) suspend() error {
	open, err := pipeline.OpenStepNames(a.definition, a.in.Position.Cursor)
	for _, name := range slices.Backward(open) {
		a.tell(&agui.StepFinished{StepName: name})
	}
	a.next.Cursor = a.in.Position.Cursor
	if a.in.Child.BranchPath == "" {
		// The activity Answer writes the end of a subagent, with the step of its call.
		return err
	}
	asks := &agui.SubagentOutcome{Type: agui.SubagentSuspended}
	for _, call := range a.in.Suspended {
		asks.InterruptIDs = append(asks.InterruptIDs, questionID(a.place.Run, call))
	}
	a.tell(&agui.SubagentFinished{SubagentRunID: a.place.Subagent, Outcome: asks})
	return err
}

// answerAction prepares the next action for the workflow, which carries it out. Without an action
// the pipeline has ended, or has failed with do.Failed. The error may be one for which unobtainable
// returns a failure.
func (a *advancer) answerAction(ctx context.Context, do pipeline.Action) error {
	switch {
	case do.Agent != nil:
		return a.takeAgent(ctx, do)
	case do.Tool != nil, do.Approve != nil:
		return a.takeCall(ctx, do)
	case do.Branches != nil:
		return a.takeBranches(ctx, do)
	case do.Sleep > 0:
		a.next.Sleep = do.Sleep
		return nil
	}
	// No action is left: the pipeline has ended.
	a.next.Failed = do.Failed
	a.end()
	return nil
}

// end adds the event that ends a branch, and stores what its compensation needs. Other pipelines
// are ended by Finish or Answer.
func (a *advancer) end() {
	b := a.in.Child
	if b == nil || b.BranchPath == "" {
		return
	}
	if f := a.next.Failed; f != nil {
		a.tell(&agui.SubagentError{SubagentRunID: a.place.Subagent, Message: f.Text(), Code: f.Code})
		return
	}
	a.stored.Ended = pipeline.Ended{Undo: a.next.Cursor.Undo, Records: a.next.Cursor.Records}
	a.tell(&agui.SubagentFinished{SubagentRunID: a.place.Subagent, Outcome: &agui.SubagentOutcome{Type: agui.SubagentSuccess}})
}

// failures returns all failures in the answer: those in the cursor, and the one that the pipeline
// ends with. They are pointers into the answer.
func (a *advancer) failures() []*pipeline.Failure {
	all := a.next.Cursor.Failures()
	if a.next.Failed != nil {
		all = append(all, a.next.Failed)
	}
	return all
}

// readDetails sets the details of the failures that steps may use. A detail may have content, so
// the workflow carries only the number of the record that has it.
func (a *advancer) readDetails(ctx context.Context, event pipeline.Event) error {
	failures := a.next.Cursor.Failures()
	if event.Failure != nil {
		failures = append(failures, event.Failure)
	}
	for i := range event.Branches {
		failures = append(failures, &event.Branches[i].Failure)
	}
	known := map[uint64]string{} // branches with the same failure share a record
	for _, f := range failures {
		if f.Record == 0 {
			continue
		}
		detail, ok := known[f.Record]
		if !ok {
			var err error
			if detail, err = a.activities.detail(ctx, a.place.Run.Thread, f.Record); err != nil {
				return err
			}
			known[f.Record] = detail
		}
		f.Detail = detail
	}
	return nil
}

// finish writes the done record and returns the answer. The error is stream.ErrStale, and nothing
// is written, if the state has changed since w.thread was read. Only branches and subagents need
// that check: the run's own agent has no concurrent writer of the state while it advances.
func (a *advancer) finish(ctx context.Context, attempt *stream.Attempt) (runs.AdvanceResult, error) {
	// This move made the detail. The record keeps it, and withSequence sets the record's number.
	for _, f := range a.failures() {
		if f.Detailed && f.Record == 0 {
			a.stored.Detail = f.Detail
		}
	}
	var err error
	if a.result.Answer, err = json.Marshal(a.next); err != nil {
		return a.next, fmt.Errorf("activities: encode the next step: %w", err)
	}
	if a.result.Kept, err = json.Marshal(a.stored); err != nil {
		return a.next, fmt.Errorf("activities: encode the stored step: %w", err)
	}
	// Branches refer to the record for their items, so that record always keeps something.
	if string(a.result.Kept) == "{}" && a.next.Branches == nil {
		a.result.Kept = nil
	}
	write := attempt.Finish
	// The mark of the snapshot must still be the last one.
	if a.sets && a.in.Child != nil {
		write = func(ctx context.Context, result *stream.Result, events ...agui.Event) (uint64, error) {
			return attempt.FinishIfUnchanged(ctx, a.thread.Mark, result, events...)
		}
	}
	seq, err := write(ctx, &a.result, a.events...)
	if err != nil {
		return a.next, err
	}
	return withSequence(a.next, seq, a.in.Tree != nil), nil
}

// recordedAdvance returns the answer in the done record of an earlier attempt. tree tells that the
// record has the steps of a program.
func recordedAdvance(ctx context.Context, done *stream.Record, tree bool) (runs.AdvanceResult, error) {
	var next runs.AdvanceResult
	err := recorded(ctx, done, &next)
	return withSequence(next, done.Seq, tree), err
}

// withSequence sets the sequence of the done record wherever the answer refers to its own record.
// The answer is encoded before the log assigns the sequence, so both finish and recordedAdvance
// call it.
func withSequence(next runs.AdvanceResult, seq uint64, tree bool) runs.AdvanceResult {
	next.Seq = seq
	keptAs(next.Cursor.Records, seq)
	for _, f := range append(next.Cursor.Failures(), next.Failed) {
		if f != nil && f.Detailed && f.Record == 0 {
			f.Record = seq
		}
	}
	if next.Answer != nil {
		next.Answer.Seq = seq
	}
	if next.Branches != nil {
		next.Branches.Record = seq
	}
	// The active step finds its tree in this record.
	if next.Active != nil && tree {
		next.Active.Place.Tree = seq
	}
	// The agent finds its prompt in this record.
	if l := next.Active; l != nil && next.Prompts {
		l.Place.Prompts = append(l.Place.Prompts, seq)
	}
	return next
}
