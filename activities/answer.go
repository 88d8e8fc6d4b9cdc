package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// This file ends subagents. When a child workflow has ended, or ends with interrupts, its workflow
// schedules AnswerSubagent, which closes the subagent's lanes and writes the result of the call that
// the subagent worked for.

// Results of subagents that did not succeed.
const (
	// subagentFailed begins the result; the code and the message follow.
	subagentFailed    = "The agent did not finish its work"
	subagentCancelled = "The agent's work was cancelled."
	subagentSilent    = "The agent ended without an answer."
)

// AnswerSubagent is subagent.answer.v1: it ends a subagent, and writes its last message as the
// result of its call. First it takes over the lanes that the subagent left open, and counts their
// model calls. A failed subagent is a failed tool call: the calling model continues. A subagent
// that ends with interrupts leaves its call without a result; the next run continues it.
func (a *Activities) AnswerSubagent(ctx context.Context, in runs.SubagentAnswer) (runs.ToolAnswer, error) {
	return withAttempt(inStep(ctx, in.Step), a, func(ctx context.Context) (runs.ToolAnswer, error) { return a.answer(ctx, in) })
}

// answer writes the done record on the lane of the call, not on the subagent's lanes. What precedes
// Begin may be repeated: taking over lanes again changes nothing, and the usage is the same.
func (a *Activities) answer(ctx context.Context, in runs.SubagentAnswer) (runs.ToolAnswer, error) {
	opened, err := a.openToolStep(ctx, in.Call)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	lastStep, usage, err := a.closeSubagentLanes(ctx, in)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	in.Usage = runs.Sum(in.Usage, usage)
	var closing []agui.Event
	// An agent's last step is open; the steps of a pipeline have been closed by its advances.
	if lastStep != "" && !in.IsPipeline {
		closing = append(closing, &agui.StepFinished{StepName: path.Base(lastStep), SubagentRunID: subagentID(in.Child.CallID)})
	}
	attempt, done, err := a.Log.Begin(ctx, toolPlace(in.Call))
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if done != nil {
		return recordedToolAnswer(ctx, done)
	}
	defer attempt.Close()
	// in.After is the subagent's last record: the snapshot must contain its last message.
	snap, err := a.Snapshots.Latest(ctx, runOf(in.Run).Thread, max(opened, in.After))
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	// The run ends with the interrupts of this subagent; the next run continues the subagent.
	if in.Outcome == runs.OutcomeInterrupt {
		return finishSuspended(ctx, in, closing, attempt, opened)
	}
	call, err := findCall(snap, in.Call)
	if err == nil {
		// The call was approved before the subagent began. This sets the edited arguments in the
		// record of the result.
		_, _, err = a.executeDecision(ctx, in.Call, &call)
	}
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	closing = append(closing, removeOutputs(in.Child.CallID, snap.State)...)
	value, err := a.keptResult(ctx, runOf(in.Run).Thread, in.Result)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	result := workResult(in, snap)
	if value != nil {
		result = tools.Result{Content: string(value)}
	}
	end := toolEnd{result: result, answer: runs.ToolAnswer{Outcome: in.Outcome, Opened: opened, Usage: in.Usage, Subagents: in.Subagents}}
	if in.Outcome != runs.OutcomeSuccess {
		var events []agui.Event
		end.closed, events = closeSubagentCalls(in, snap)
		closing = append(closing, events...)
	}
	// The end of the subagent and the result of its call are one record. Clients that never saw the
	// subagent begin need no events of its end.
	if lastStep != "" {
		end.before = append(closing, subagentEnd(in, result))
	}
	if in.Outcome != runs.OutcomeSuccess {
		return finishCall(ctx, in.Call, call, attempt, end)
	}
	definition, err := a.definition(ctx, in.Call.Step)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if change := newStateChange(definition.State, call, result, nil); change != nil {
		return a.finishWithChange(ctx, in.Call, call, attempt, end, change, snap)
	}
	return finishCall(ctx, in.Call, call, attempt, end)
}

// closeSubagentCalls returns the results of calls that a cancelled or failed subagent has left
// without one, and the events that show them and restore the predicted state.
func closeSubagentCalls(in runs.SubagentAnswer, snap *snapshot.Snapshot) (results []agui.Message, events []agui.Event) {
	place := agentPlace(in.Step, "")
	results = snap.SubagentResults(place.Run, place.Subagent, place.Lane)
	for _, m := range results {
		events = append(events, restorePredicted(snap, agui.ToolCall{ID: m.ToolCallID}, nil)...)
		events = append(events, agui.ToolCallResultOf(m))
	}
	return results, events
}

// removeOutputs returns the event that removes the step outputs of a program from the state, if the
// state has any. Programs have no last advance; the last advance of a pipeline has removed its
// outputs.
func removeOutputs(callID string, state json.RawMessage) []agui.Event {
	var members, outputs map[string]json.RawMessage
	home := agents.AgentPrefix + callID
	// A state of another form has no outputs.
	if json.Unmarshal(state, &members) != nil || json.Unmarshal(members[pipeline.Outputs], &outputs) != nil || outputs[home] == nil {
		return nil
	}
	patch := fmt.Sprintf(`[{"op":"remove","path":"/%s/%s"}]`, pipeline.Outputs, home)
	return []agui.Event{&agui.StateDelta{Delta: json.RawMessage(patch)}}
}

// closeSubagentLanes takes over the lanes that the subagent left open, its own and those of its
// calls. If the run was cancelled, the text of an unfinished model call is kept, otherwise it is
// retracted. It returns the ID of the subagent's last step ("" = the subagent was never announced
// to clients), and the usage that the subagent's workflow does not know.
func (a *Activities) closeSubagentLanes(ctx context.Context, in runs.SubagentAnswer) (step string, usage []runs.Usage, err error) {
	place := agentPlace(in.Step, "")
	if place.Step, err = a.Log.Announced(ctx, place); err != nil {
		return "", nil, err
	}
	if usage, err = a.supersedeLanes(ctx, place, in.Unfinished); err != nil {
		return "", nil, err
	}
	// Without a record on its lane the subagent has called no model.
	if place.Step == "" {
		return "", usage, nil
	}
	unreportedUsage, err := a.endUnfinishedStep(ctx, place, in.Outcome)
	return place.Step, runs.Sum(usage, unreportedUsage), err
}

// workResult returns the result of the call for the calling model: the subagent's last message, or
// what happened instead.
func workResult(in runs.SubagentAnswer, snap *snapshot.Snapshot) tools.Result {
	switch in.Outcome {
	case runs.OutcomeSuccess:
	case runs.OutcomeCancelled:
		return tools.Failed(subagentCancelled)
	default:
		return tools.Failed(strings.Join(slices.DeleteFunc([]string{subagentFailed, in.Code, in.Message}, func(s string) bool { return s == "" }), ": ") + ".")
	}
	i := slices.IndexFunc(snap.Entries, func(e snapshot.Entry) bool { return e.Message.ID == in.MessageID })
	if in.MessageID == "" || i < 0 || snap.Entries[i].Message.Content.IsAbsent() {
		return tools.Result{Content: subagentSilent}
	}
	return resultOf(snap.Entries[i].Message)
}

// finishSuspended ends a subagent that waits for interrupts. The done record has the IDs of the
// interrupts, and no result of the call.
func finishSuspended(ctx context.Context, in runs.SubagentAnswer, closing []agui.Event, attempt *stream.Attempt, opened uint64) (runs.ToolAnswer, error) {
	answer := runs.ToolAnswer{Outcome: in.Outcome, Opened: opened, Usage: in.Usage, Subagents: in.Subagents}
	recorded, err := json.Marshal(answer)
	if err != nil {
		return answer, fmt.Errorf("activities: encode answer: %w", err)
	}
	id, outcome := subagentID(in.Child.CallID), &agui.SubagentOutcome{Type: agui.SubagentSuspended}
	for _, call := range in.Interrupts {
		outcome.InterruptIDs = append(outcome.InterruptIDs, interruptID(runOf(in.Run), call))
	}
	answer.Seq, err = attempt.Finish(ctx, &stream.Result{Answer: recorded},
		append(closing, &agui.SubagentFinished{SubagentRunID: id, Outcome: outcome})...)
	return answer, err
}

// subagentEnd returns the event that ends the subagent for clients.
func subagentEnd(in runs.SubagentAnswer, result tools.Result) agui.Event {
	id := subagentID(in.Child.CallID)
	if in.Outcome == runs.OutcomeSuccess {
		return &agui.SubagentFinished{SubagentRunID: id, Outcome: &agui.SubagentOutcome{Type: agui.SubagentSuccess}}
	}
	code := in.Code
	if in.Outcome == runs.OutcomeCancelled {
		code = "cancelled"
	}
	return &agui.SubagentError{SubagentRunID: id, Message: result.Content, Code: code}
}
