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

// event completes the workflow's event: it adds the output of an agent or a call, the failures of
// branches, and what compensations need. A call that has ended may turn out as a failure.
func (a *advancer) event(ctx context.Context) (pipeline.Event, error) {
	event, leaf := *a.in.Position.Event, a.in.Position.Active
	// The workflow has the failures of branches in a compact form.
	event.Branches = a.in.Position.Branches.BranchFailures()
	if err := a.branchesEnded(ctx, &event); err != nil {
		return event, err
	}
	switch {
	// Only an agent or a call that is done has an output.
	case event.Kind != pipeline.EventDone || leaf == nil:
		return event, nil
	case leaf.CallID != "":
		return a.called(ctx, leaf)
	}
	// The output of an agent is the text of its last message; "" if it has none.
	var text string
	if at := a.find(func(m agui.Message) bool { return m.ID == a.in.Position.Answered }); at >= 0 {
		text = a.thread.Entries[at].Message.Content.Text()
	}
	var err error
	if event.Output, err = json.Marshal(text); err != nil {
		return event, fmt.Errorf("activities: encode output: %w", err)
	}
	return event, nil
}

// find returns the index of the first message for which is returns true; -1 = there is none.
func (a *advancer) find(is func(agui.Message) bool) int {
	return slices.IndexFunc(a.thread.Entries, func(e snapshot.Entry) bool { return is(e.Message) })
}

// toolFailed is the code of a step whose tool reported a failure. onError steps may match it.
const toolFailed = "tool_failed"

// called returns how a tool call, an approval or a subagent's call ended: with its output, or as a
// failure if it was not approved, has no result, or has an error. The text of a tool is its output
// as JSON if it is valid JSON, else as a string. The text of a subagent is always a string, because
// the output rules of the step judge it.
func (a *advancer) called(ctx context.Context, leaf *runs.ActiveStep) (pipeline.Event, error) {
	event := pipeline.Event{Kind: pipeline.EventDone}
	verdict, content, err := a.verdict(ctx, leaf.CallID)
	if err != nil {
		return event, err
	}
	// An approve step has no tool result. A rejection is its output, not its failure.
	if leaf.Place.Inline {
		event.Output, err = a.approvalOutput(leaf.CallID, verdict, content)
		return event, err
	}
	// A refused call fails the step. Its result is only a text for a model.
	refused := verdict == runs.DecisionReject || verdict == runs.DecisionExpire || verdict == runs.DecisionCancel
	step := pipeline.StepAt(a.definition, leaf.Place.Path)
	at := a.find(func(m agui.Message) bool { return m.Role == agui.RoleTool && m.ToolCallID == leaf.CallID })
	switch {
	case refused:
		return failedWith("rejected", "the call was not approved"), nil
	case at < 0:
		return failedWith(toolFailed, "the call has no result"), nil
	case a.thread.Entries[at].Message.Error != "":
		failed := failedWith(toolFailed, describeCall(step)+" failed")
		failed.Failure.Detail, failed.Failure.Detailed = clip(a.thread.Entries[at].Message.Error, maxDetail), true
		return failed, nil
	}
	text := a.thread.Entries[at].Message.Content.Text()
	if event.Output = json.RawMessage(text); step.Agent != nil || !json.Valid(event.Output) {
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

// maxDetail bounds the detail of a tool's failure, in bytes.
const maxDetail = 500

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

// failedWith returns the event of a failed step. message must not have content.
func failedWith(code, message string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventFailed, Failure: &pipeline.Failure{Code: code, Message: message}}
}

// verdict returns the decision about a call, with its content. The kind is "" if the call needed
// none. The decision is never nil.
func (a *advancer) verdict(ctx context.Context, callID string) (runs.DecisionKind, *stream.Decision, error) {
	at := slices.IndexFunc(a.thread.Decided, func(d stream.Decided) bool { return d.CallID == callID })
	if at < 0 {
		return "", &stream.Decision{}, nil
	}
	decided := a.thread.Decided[at]
	if decided.Proposal == 0 {
		return runs.DecisionKind(decided.Kind), &stream.Decision{}, nil
	}
	content, err := a.activities.Log.Decision(ctx, decided.Proposal)
	return runs.DecisionKind(decided.Kind), content, err
}

// approvalOutput returns the output of an approve step: whether it was approved, by whom, and with
// which arguments, which an approver may have edited.
func (a *advancer) approvalOutput(callID string, verdict runs.DecisionKind, content *stream.Decision) (json.RawMessage, error) {
	out := struct {
		Approved bool              `json:"approved"`
		Decision runs.DecisionKind `json:"decision"`
		By       string            `json:"by,omitempty"`
		Reason   string            `json:"reason,omitempty"`
		Content  string            `json:"content,omitempty"`
		Args     json.RawMessage   `json:"args,omitempty"`
	}{Approved: verdict == runs.DecisionApprove || verdict == runs.DecisionEdit, Decision: verdict, Reason: content.Reason}
	if content.By != nil {
		out.By = content.By.Subject
	}
	if content.Result != nil {
		out.Content = content.Result.Content.Text()
	}
	// The conversation has the arguments as they are after an edit.
	for _, e := range a.thread.Entries {
		for _, c := range e.Message.ToolCalls {
			if c.ID == callID {
				out.Args = json.RawMessage(c.Arguments)
			}
		}
	}
	output, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("activities: encode output: %w", err)
	}
	return output, nil
}
