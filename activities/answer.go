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

// Results of subagents that did not succeed.
const (
	delegateFailed    = "The agent did not finish its work"
	delegateCancelled = "The agent's work was cancelled."
	delegateSilent    = "The agent ended without an answer."
)

// Answer is subagent.answer.v1: it ends a subagent, and its call with the subagent's last message.
// First it takes over the lanes that the subagent left open. A failed subagent is a failed tool
// call: the calling model continues.
func (a *Activities) Answer(ctx context.Context, in runs.SubagentAnswer) (answer runs.ToolAnswer, err error) {
	ctx = inStep(ctx, in.Step)
	defer contain(ctx, &err)
	work, leave, err := a.attend(ctx)
	if err != nil {
		return answer, fail(ctx, err)
	}
	defer leave()
	answer, err = a.answer(work, in)
	return answer, fail(ctx, err)
}

func (a *Activities) answer(ctx context.Context, in runs.SubagentAnswer) (runs.ToolAnswer, error) {
	opened, err := a.openToolStep(ctx, in.Call)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	begun, used, err := a.endSpeaking(ctx, in)
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	in.Usage = runs.Sum(in.Usage, used)
	var closing []agui.Event
	if begun != "" && !in.IsPipeline {
		closing = append(closing, &agui.StepFinished{StepName: path.Base(begun), SubagentRunID: subagentID(in.Child.CallID)})
	}
	attempt, done, err := a.Log.Begin(ctx, toolPlace(in.Call))
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if done != nil {
		return recordedToolAnswer(ctx, done)
	}
	defer attempt.Close()
	thread, err := a.Snapshots.Latest(ctx, runOf(in.Run).Thread, max(opened, in.After))
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	if in.Outcome == runs.OutcomeInterrupt {
		return suspend(ctx, in, closing, attempt, opened)
	}
	call, err := findCall(thread, in.Call)
	if err == nil {
		_, _, err = a.executeDecision(ctx, in.Call, &call)
	}
	if err != nil {
		return runs.ToolAnswer{}, err
	}
	closing = append(closing, removeOutputs(in.Child.CallID, thread.State)...)
	result := workResult(in, thread)
	told := runs.ToolAnswer{Outcome: in.Outcome, Opened: opened, Usage: in.Usage, Subagents: in.Subagents}
	return finishTool(ctx, in.Call, call, attempt, result, told, farewell(in, begun != "", closing, result)...)
}

// removeOutputs removes the outputs of a program that worked for a call. The last step of a
// pipeline has removed its own.
func removeOutputs(callID string, state json.RawMessage) []agui.Event {
	var at struct {
		Steps map[string]json.RawMessage `json:"steps"`
	}
	home := agents.AgentPrefix + callID
	if err := json.Unmarshal(state, &at); err != nil || at.Steps[home] == nil { // there is nothing that it could stand in
		return nil
	}
	patch := fmt.Sprintf(`[{"op":"remove","path":"/%s/%s"}]`, pipeline.Outputs, home)
	return []agui.Event{&agui.StateDelta{Delta: json.RawMessage(patch)}}
}

// endSpeaking takes over what the subagent left open. It returns the ID of the subagent's step, and
// the usage that its workflow does not know. step is "" if the subagent was never announced.
func (a *Activities) endSpeaking(ctx context.Context, in runs.SubagentAnswer) (step string, used []runs.Usage, err error) {
	p := agentPlace(in.Step, "")
	if p.Step, err = a.Log.Announced(ctx, p); err != nil {
		return "", nil, err
	}
	if used, err = a.takeOver(ctx, p, in.Unfinished); err != nil {
		return "", nil, err
	}
	if p.Step == "" {
		return "", used, nil
	}
	if err := a.Log.Supersede(ctx, p, in.Outcome == runs.OutcomeCancelled); err != nil {
		return "", nil, err
	}
	more, err := a.unreported(ctx, p)
	return p.Step, runs.Sum(used, more), err
}

// workResult returns the result of the call.
func workResult(in runs.SubagentAnswer, thread *snapshot.Snapshot) tools.Result {
	switch in.Outcome {
	case runs.OutcomeSuccess:
	case runs.OutcomeCancelled:
		return tools.Failed(delegateCancelled)
	default:
		return tools.Failed(strings.Join(slices.DeleteFunc([]string{delegateFailed, in.Code, in.Message}, func(s string) bool { return s == "" }), ": ") + ".")
	}
	at := slices.IndexFunc(thread.Entries, func(e snapshot.Entry) bool { return e.Message.ID == in.MessageID })
	if in.MessageID == "" || at < 0 || thread.Entries[at].Message.Content.IsAbsent() {
		return tools.Result{Content: delegateSilent}
	}
	return resultOf(thread.Entries[at].Message)
}

// suspend ends a subagent that waits for interrupts, without a result of its call.
func suspend(ctx context.Context, in runs.SubagentAnswer, closing []agui.Event, attempt *stream.Attempt, opened uint64) (runs.ToolAnswer, error) {
	told := runs.ToolAnswer{Outcome: in.Outcome, Opened: opened, Usage: in.Usage, Subagents: in.Subagents}
	recorded, err := json.Marshal(told)
	if err != nil {
		return told, fmt.Errorf("activities: encode answer: %w", err)
	}
	id, asks := subagentID(in.Child.CallID), &agui.SubagentOutcome{Type: agui.SubagentSuspended}
	for _, call := range in.Interrupts {
		asks.InterruptIDs = append(asks.InterruptIDs, questionID(runOf(in.Run), call))
	}
	told.Seq, err = attempt.Finish(ctx, &stream.Result{Answer: recorded},
		append(closing, &agui.SubagentFinished{SubagentRunID: id, Outcome: asks})...)
	return told, err
}

// farewell returns the events that end the subagent, if it has begun.
func farewell(in runs.SubagentAnswer, begun bool, events []agui.Event, result tools.Result) []agui.Event {
	if !begun {
		return nil
	}
	id := subagentID(in.Child.CallID)
	if in.Outcome == runs.OutcomeSuccess {
		return append(events, &agui.SubagentFinished{SubagentRunID: id, Outcome: &agui.SubagentOutcome{Type: agui.SubagentSuccess}})
	}
	code := in.Code
	if in.Outcome == runs.OutcomeCancelled {
		code = "cancelled"
	}
	return append(events, &agui.SubagentError{SubagentRunID: id, Message: result.Content, Code: code})
}
