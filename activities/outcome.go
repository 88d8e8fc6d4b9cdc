package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file reads from the log how the active step of a pipeline ended. The workflow knows only
// that it ended, and with which message or call; outputs, decisions and errors are content.

// buildEvent completes the workflow's event: it adds the output of an agent or a call, the failures
// of branches, and what compensations need. A call that has ended may turn out as a failure.
func (adv *advancer) buildEvent(ctx context.Context) (pipeline.Event, error) {
	event, step := *adv.in.Position.Event, adv.in.Position.Active
	// The workflow has the failures of branches in a compact form.
	event.Branches = adv.in.Position.Branches.BranchFailures()
	if err := adv.addBranchEnds(ctx, &event); err != nil {
		return event, err
	}
	switch {
	// Only an agent or a call that is done has an output.
	case event.Kind != pipeline.EventDone || step == nil:
		return event, nil
	case step.CallID != "":
		return adv.callEvent(ctx, step)
	}
	// The output of an agent is the text of its last message, "" if it has none; or the value of an
	// answer that was checked. That of a step with a schema is a text as well: applyOutput reads it.
	var text string
	if i := adv.findMessage(func(m agui.Message) bool { return m.ID == adv.in.Position.Answered }); i >= 0 {
		text = adv.thread.Entries[i].Message.Content.Text()
	}
	value, err := adv.activities.keptResult(ctx, adv.place.Run.Thread, adv.in.Position.Result)
	if err != nil {
		return event, err
	}
	if value != nil {
		if treeStep := pipeline.StepAt(adv.definition, step.PipelineStep.Path); treeStep == nil || treeStep.Output == nil {
			event.Output = value
			return event, nil
		}
		text = string(value)
	}
	if event.Output, err = json.Marshal(text); err != nil {
		return event, fmt.Errorf("activities: encode output: %w", err)
	}
	return event, nil
}

// findMessage returns the index of the first message that matches; -1 = there is none.
func (adv *advancer) findMessage(matches func(agui.Message) bool) int {
	return slices.IndexFunc(adv.thread.Entries, func(e snapshot.Entry) bool { return matches(e.Message) })
}

// toolFailed is the code of a step whose tool reported a failure. onError steps may match it.
const toolFailed = "tool_failed"

// callEvent returns how a tool call, an approval or a subagent's call ended: with its output, or as
// a failure if it was not approved, has no result, or has an error. The text of a tool is its
// output as JSON if it is valid JSON, else as a string. The text of a subagent is a string, because
// the output rules of the step judge it, unless its agent has an output of its own.
func (adv *advancer) callEvent(ctx context.Context, active *runs.ActiveStep) (pipeline.Event, error) {
	event := pipeline.Event{Kind: pipeline.EventDone}
	decision, content, err := adv.decisionOn(ctx, active.CallID)
	if err != nil {
		return event, err
	}
	// An approve step has no tool result. A rejection is its output, not its failure.
	if active.PipelineStep.Inline {
		event.Output, err = adv.approvalOutput(active.CallID, decision, content)
		return event, err
	}
	// A call that was not approved fails the step. Its result is only a text for a model.
	isRefused := decision == runs.DecisionReject || decision == runs.DecisionExpire || decision == runs.DecisionCancel
	step := pipeline.StepAt(adv.definition, active.PipelineStep.Path)
	if step.Tool == agents.WaitTool && decision == runs.DecisionExpire { // its time has come
		isRefused = false
	}
	i := adv.findMessage(func(m agui.Message) bool { return m.Role == agui.RoleTool && m.ToolCallID == active.CallID })
	switch {
	case isRefused && step.Tool == agents.EventTool && decision == runs.DecisionExpire:
		return failedEvent("timeout", "no such event arrived in time"), nil
	case isRefused:
		return failedEvent("rejected", "the call was not approved"), nil
	case i < 0:
		return failedEvent(toolFailed, "the call has no result"), nil
	case adv.thread.Entries[i].Message.Error != "":
		failure := failedEvent(toolFailed, describeCall(step)+" failed")
		failure.Failure.Detail, failure.Failure.Detailed = clip(adv.thread.Entries[i].Message.Error, maxDetailBytes), true
		return failure, nil
	}
	text := adv.thread.Entries[i].Message.Content.Text()
	isText := step.Agent != nil && (!active.Structured || step.Output != nil)
	if event.Output = json.RawMessage(text); isText || !json.Valid(event.Output) {
		event.Output, err = json.Marshal(text)
	}
	return event, err
}

// describeCall names what a step called, for the message of its failure.
func describeCall(step *agents.Step) string {
	if step.Agent != nil {
		return "the agent"
	}
	return fmt.Sprintf("the tool %q", step.Tool)
}

// maxDetailBytes bounds the detail of a tool's failure, in bytes.
const maxDetailBytes = 500

// clip makes one line of a text, of at most limit bytes: control characters become spaces.
func clip(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// failedEvent returns the event of a failed step. message must not have content.
func failedEvent(code, message string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventFailed, Failure: &pipeline.Failure{Code: code, Message: message}}
}

// decisionOn returns the decision about a call, with its content. The kind is "" if the call needed
// none. The decision is never nil.
func (adv *advancer) decisionOn(ctx context.Context, callID string) (runs.DecisionKind, *stream.Decision, error) {
	i := slices.IndexFunc(adv.thread.Decided, func(d stream.Decided) bool { return d.CallID == callID })
	if i < 0 {
		return "", &stream.Decision{}, nil
	}
	decided := adv.thread.Decided[i]
	if decided.Proposal == 0 {
		return runs.DecisionKind(decided.Kind), &stream.Decision{}, nil
	}
	content, err := adv.activities.Log.Decision(ctx, decided.Proposal)
	return runs.DecisionKind(decided.Kind), content, err
}

// approvalOutput returns the output of an approve step: whether it was approved, by whom, and with
// which arguments, which an approver may have edited.
func (adv *advancer) approvalOutput(callID string, decision runs.DecisionKind, content *stream.Decision) (json.RawMessage, error) {
	out := struct {
		Approved bool              `json:"approved"`
		Decision runs.DecisionKind `json:"decision"`
		By       string            `json:"by,omitempty"`
		Reason   string            `json:"reason,omitempty"`
		Content  string            `json:"content,omitempty"`
		Args     json.RawMessage   `json:"args,omitempty"`
	}{Approved: decision == runs.DecisionApprove || decision == runs.DecisionEdit, Decision: decision, Reason: content.Reason}
	if content.By != nil {
		out.By = content.By.Subject
	}
	if content.Result != nil {
		out.Content = content.Result.Content.Text()
	}
	// The conversation has the arguments as they are after an edit.
	if call, ok := adv.thread.FindCall(callID); ok {
		out.Args = json.RawMessage(call.Arguments)
	}
	output, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("activities: encode output: %w", err)
	}
	return output, nil
}
