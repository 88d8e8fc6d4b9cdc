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

// Advance is pipeline.advance.v1: it takes the result of an action and finds the next one. It
// writes one record: the steps that begin and end, the changes of the state, and the tool call or
// approval of the next step. A later attempt finds that record, or nothing.
func (a *Activities) Advance(ctx context.Context, in runs.Advance) (next runs.Advanced, err error) {
	ctx = inStep(ctx, in.Step)
	defer contain(ctx, &err)
	work, leave, err := a.attend(ctx) // it is short: the workflow handles a cancel afterwards
	if err != nil {
		return next, fail(ctx, err)
	}
	defer leave()
	next, err = a.advance(work, in)
	return next, fail(ctx, err)
}

func (a *Activities) advance(ctx context.Context, in runs.Advance) (runs.Advanced, error) {
	place := agentPlace(in.Step, in.ID)
	used, err := a.takeOver(ctx, place, in.Unfinished)
	if err != nil {
		return runs.Advanced{}, err
	}
	if in.After, err = a.comeBehind(ctx, place, in); err != nil {
		return runs.Advanced{}, err
	}
	if in.FailedStep != nil {
		more, err := a.unreported(ctx, place)
		if err != nil {
			return runs.Advanced{}, err
		}
		used = runs.Sum(used, more)
	}
	if place.After, err = a.openWalk(ctx, place, in); err != nil {
		return runs.Advanced{}, err
	}
	attempt, done, err := a.Log.Begin(ctx, place)
	if err != nil {
		return runs.Advanced{}, err
	}
	if done != nil {
		return recordedAdvance(ctx, done, in.Tree != nil)
	}
	defer attempt.Close()
	d, err := a.walked(ctx, in)
	if err != nil {
		return runs.Advanced{}, err
	}
	for {
		w := &walker{activities: a, in: in, place: place, definition: d, next: runs.Advanced{CallEnded: in.AfterCall, Usage: used}}
		if err := w.walk(ctx); err != nil {
			return runs.Advanced{}, a.tellLacking(ctx, in.Step, attempt, err)
		}
		next, err := w.finish(ctx, attempt)
		if !errors.Is(err, stream.ErrStale) {
			return next, err
		}
	}
}

// comeBehind begins the step after one that has failed, if one has, and returns the last record of
// the lane.
func (a *Activities) comeBehind(ctx context.Context, p stream.Place, in runs.Advance) (uint64, error) {
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
	return a.Log.Succeed(ctx, p, failed, steering(b.Place, b.Steered), append(events, &agui.StepStarted{StepName: b.Name})...)
}

// walked returns the agent of the steps.
func (a *Activities) walked(ctx context.Context, in runs.Advance) (*agents.Definition, error) {
	d, err := a.Agents.Revision(ctx, in.Agent, in.Revision)
	if err != nil {
		return nil, err
	}
	if in.Tree != nil {
		return pipeline.WithTree(d, in.Tree)
	}
	return a.withTree(ctx, d, runOf(in.Run).Thread, in.Position.Tree)
}

// openWalk writes the opening of the run, or of the subagent, if the steps begin.
func (a *Activities) openWalk(ctx context.Context, p stream.Place, in runs.Advance) (uint64, error) {
	switch b := in.Child; {
	case in.Announces != nil:
		return a.announce(ctx, p, in.Step, *in.Announces)
	case in.Beginning != (runs.Beginning{}):
		o := opening(in.Agent, in.Revision, in.Beginning)
		if in.Resumes { // the outputs of the run before stay: later steps and compensations use them
			o.Keeps = pipeline.Outputs
		}
		return a.Snapshots.OpenRun(ctx, p, o, false)
	case b != nil && b.BranchPath != "" && in.After == 0:
		started := &agui.SubagentStarted{SubagentRunID: p.Subagent, Name: b.Name}
		if b.ParentCallID != "" {
			started.ParentSubagentRunID = subagentID(b.ParentCallID)
		}
		return a.Log.Open(ctx, p, nil, started)
	}
	return in.After, nil
}

// walker is one call of Advance.
type walker struct {
	activities *Activities
	in         runs.Advance
	place      stream.Place
	definition *agents.Definition
	thread     *snapshot.Snapshot
	said       string // the text of the user's last message

	next   runs.Advanced
	told   []agui.Event
	sets   bool // a change depends on the value of the state
	kept   storedAdvance
	result stream.Result
}

func (w *walker) walk(ctx context.Context) (err error) {
	after := max(w.in.After, w.place.Since)
	if f := w.in.Position.Branches; f != nil {
		after = max(after, f.Last)
	}
	if w.thread, err = w.activities.Snapshots.Latest(ctx, w.place.Run.Thread, after); err != nil {
		return err
	}
	_ = w.activities.Snapshots.Checkpoint(ctx, w.place.Run.Thread, w.thread, false) // an optimization
	if w.in.Closes != "" {
		w.tell(&agui.StepFinished{StepName: w.in.Closes})
	}
	if w.in.Tree != nil {
		if w.next.Failed = invalidStep(w.definition); w.next.Failed != nil {
			w.next.Cursor = w.in.Position.Cursor
			return nil
		}
	}
	switch {
	case w.in.Resumes:
		return w.reopen()
	case len(w.in.Suspended) > 0:
		return w.suspend()
	}
	w.kept.Tree = w.in.Tree
	env, err := w.env(ctx)
	if err != nil {
		return err
	}
	if w.in.Expression != "" {
		return w.evaluate(env)
	}
	event, err := w.event(ctx)
	if err != nil {
		return err
	}
	w.next.Cursor = w.in.Position.Cursor
	if err := w.readDetails(ctx, event); err != nil {
		return err
	}
	for {
		move, err := pipeline.Advance(w.definition, w.next.Cursor, event, env)
		if err != nil {
			return err
		}
		for _, c := range move.Changes {
			w.change(c)
			if env.State, err = applyChange(env.State, c); err != nil {
				return err
			}
		}
		w.next.Cursor, w.sets = move.Cursor, w.sets || move.Sets
		w.storeDone(move.Done)
		err = w.answerAction(ctx, move.Action)
		why := unobtainable(err)
		if why == nil {
			return err
		}
		event = pipeline.Event{Kind: pipeline.EventFailed, Failure: why}
	}
}

// maxReason bounds the message about an invalid step, in bytes.
const maxReason = 500

// invalidStep returns what is wrong with a step of a program; nil = nothing.
func invalidStep(d *agents.Definition) *pipeline.Failure {
	err := d.ValidateStep(d.Steps[0])
	if err == nil {
		return nil
	}
	why := strings.ReplaceAll(err.Error(), "\n", "; ")
	return &pipeline.Failure{Code: "invalid_step", Message: strings.ToValidUTF8(why[:min(len(why), maxReason)], "")}
}

// applyChange returns a state after a change.
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

// unobtainable returns the failure of a step that lacks an agent or a tool for good; nil = it lacks
// none.
func unobtainable(err error) *pipeline.Failure {
	var lacking *lackingError
	switch {
	case errors.Is(err, errTooDeep):
		return &pipeline.Failure{Code: runs.CodeLimitSubagents, Message: fmt.Sprintf("more than %d agents would work for one another", runs.MaxDepth)}
	case errors.As(err, &lacking) && lacking.retry == 0:
		return &pipeline.Failure{Code: "tool_unavailable", Message: "the step needs what is not available: " + lacking.what()}
	}
	return nil
}

func (w *walker) tell(events ...agui.Event) { w.told = append(w.told, events...) }

func (w *walker) change(c pipeline.Change) {
	switch {
	case c.Started != "":
		w.tell(&agui.StepStarted{StepName: c.Started})
	case c.Finished != "":
		w.tell(&agui.StepFinished{StepName: c.Finished})
	default:
		w.tell(&agui.StateDelta{Delta: c.Patch})
	}
}

// reopen tells clients again of the open steps, in a run or a child that continues a suspended one.
func (w *walker) reopen() error {
	open, err := pipeline.Open(w.definition, w.in.Position.Cursor)
	for _, name := range open {
		w.tell(&agui.StepStarted{StepName: name})
	}
	w.next.Cursor = w.in.Position.Cursor
	return err
}

// suspend tells clients that the open steps of a child end, because the child waits for interrupts.
// The next run reopens them.
func (w *walker) suspend() error {
	open, err := pipeline.Open(w.definition, w.in.Position.Cursor)
	for _, name := range slices.Backward(open) {
		w.tell(&agui.StepFinished{StepName: name})
	}
	w.next.Cursor = w.in.Position.Cursor
	if w.in.Child.BranchPath == "" {
		return err // the end of the call is written elsewhere
	}
	asks := &agui.SubagentOutcome{Type: agui.SubagentSuspended}
	for _, call := range w.in.Suspended {
		asks.InterruptIDs = append(asks.InterruptIDs, questionID(w.place.Run, call))
	}
	w.tell(&agui.SubagentFinished{SubagentRunID: w.place.Subagent, Outcome: asks})
	return err
}

// answerAction tells the workflow the next action.
func (w *walker) answerAction(ctx context.Context, do pipeline.Action) error {
	switch {
	case do.Agent != nil:
		return w.takeAgent(ctx, do)
	case do.Tool != nil, do.Approve != nil:
		return w.takeCall(ctx, do)
	case do.Branches != nil:
		return w.takeBranches(ctx, do)
	case do.Sleep > 0:
		w.next.Sleep = do.Sleep
		return nil
	}
	w.next.Failed = do.Failed
	w.end()
	return nil
}

// end closes a branch that has ended.
func (w *walker) end() {
	b := w.in.Child
	if b == nil || b.BranchPath == "" {
		return
	}
	if f := w.next.Failed; f != nil {
		w.tell(&agui.SubagentError{SubagentRunID: w.place.Subagent, Message: f.Text(), Code: f.Code})
		return
	}
	w.kept.Ended = pipeline.Ended{Undo: w.next.Cursor.Undo, Records: w.next.Cursor.Records}
	w.tell(&agui.SubagentFinished{SubagentRunID: w.place.Subagent, Outcome: &agui.SubagentOutcome{Type: agui.SubagentSuccess}})
}

// failures returns those of the answer.
func (w *walker) failures() []*pipeline.Failure {
	all := w.next.Cursor.Failures()
	if w.next.Failed != nil {
		all = append(all, w.next.Failed)
	}
	return all
}

// readDetails reads the details of the failures that steps may use.
func (w *walker) readDetails(ctx context.Context, event pipeline.Event) error {
	failures := w.next.Cursor.Failures()
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
			if detail, err = w.activities.detail(ctx, w.place.Run.Thread, f.Record); err != nil {
				return err
			}
			known[f.Record] = detail
		}
		f.Detail = detail
	}
	return nil
}

// finish writes the record.
func (w *walker) finish(ctx context.Context, attempt *stream.Attempt) (runs.Advanced, error) {
	for _, f := range w.failures() {
		if f.Detailed && f.Record == 0 {
			w.kept.Detail = f.Detail
		}
	}
	var err error
	if w.result.Answer, err = json.Marshal(w.next); err != nil {
		return w.next, fmt.Errorf("activities: encode what comes next: %w", err)
	}
	if w.result.Kept, err = json.Marshal(w.kept); err != nil {
		return w.next, fmt.Errorf("activities: encode what a step keeps: %w", err)
	}
	if string(w.result.Kept) == "{}" && w.next.Branches == nil {
		w.result.Kept = nil
	}
	write := attempt.Finish
	if w.sets && w.in.Child != nil { // other branches may change the state
		write = func(ctx context.Context, result *stream.Result, events ...agui.Event) (uint64, error) {
			return attempt.FinishOn(ctx, w.thread.Mark, result, events...)
		}
	}
	seq, err := write(ctx, &w.result, w.told...)
	if err != nil {
		return w.next, err
	}
	return withSequence(w.next, seq, w.in.Tree != nil), nil
}

func recordedAdvance(ctx context.Context, done *stream.Record, tree bool) (runs.Advanced, error) {
	var next runs.Advanced
	err := recorded(ctx, done, &next)
	return withSequence(next, done.Seq, tree), err
}

// withSequence sets the sequence of the record where the answer refers to itself.
func withSequence(next runs.Advanced, seq uint64, tree bool) runs.Advanced {
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
	if next.Active != nil && tree {
		next.Active.Place.Tree = seq
	}
	if l := next.Active; l != nil && next.Prompts {
		l.Place.Prompts = append(l.Place.Prompts, seq)
	}
	return next
}
