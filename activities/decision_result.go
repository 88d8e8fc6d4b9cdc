package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// This file carries out decisions about interrupts: the workflow passes the kind of the decision
// and the number of the record that has its content.

// Results of calls that were not made.
const (
	// The reason of the approver follows, if there is one.
	callRejected  = "The approver rejected this call. It was not made."
	callExpired   = "The approval of this call expired. It was not made."
	callSkipped   = "The approval of this call expired. The call was skipped."
	callUndecided = "The approval of this call was cancelled. It was not made."
)

// executeDecision carries out the decision about a call. An empty outcome means that the call is
// made: there was no decision, or an approval. For an edit it sets call.Arguments. Another outcome
// comes with the result of the call, which is not made.
//
// The error is final if the arguments differ from the approved ones: then the conversation has
// changed since, or there is a defect.
func (a *Activities) executeDecision(ctx context.Context, in runs.ToolCall, call *agui.ToolCall) (tools.Result, runs.Outcome, error) {
	d := in.Decision
	// The answer to a question of a tool is for the tool; see inquiry.
	if d == nil || in.QuestionRecord > 0 {
		return tools.Result{}, "", nil
	}
	content := &stream.Decision{}
	// A decision without content, such as one by time, has no proposal.
	if d.Proposal > 0 {
		var err error
		if content, err = a.Log.Decision(ctx, d.Proposal); err != nil {
			return tools.Result{}, "", err
		}
	}
	switch d.Kind {
	case runs.DecisionApprove, runs.DecisionEdit:
		if d.Kind == runs.DecisionEdit {
			call.Arguments = string(content.Args)
		}
		// What approvers approved is what is executed.
		if runs.DigestArgs(call.Arguments) != d.ArgsDigest {
			return tools.Result{}, "", temporal.NewNonRetryableApplicationError("the arguments of the call differ from the approved arguments", runs.CodeInternal, nil)
		}
		return tools.Result{}, "", nil
	case runs.DecisionAnswer, runs.DecisionToolResult:
		// The decision has no content to use as a result.
		if content.Result == nil {
			return tools.Failed(callUndecided), runs.OutcomeError, nil
		}
		return resultOf(*content.Result), runs.OutcomeSuccess, nil
	case runs.DecisionReject:
		return tools.Failed(withReason(callRejected, content.Reason)), runs.OutcomeError, nil
	case runs.DecisionExpire:
		return tools.Failed(expiredText(in.OnExpiry)), runs.OutcomeError, nil
	default:
		return tools.Failed(callUndecided), runs.OutcomeError, nil
	}
}

// expiredText returns the result of a call whose approval expired, as the rule defines it.
func expiredText(onExpiry runs.OnExpiry) string {
	if onExpiry == runs.OnExpirySkip {
		return callSkipped
	}
	return callExpired
}

// resultOf returns a tool message, or the last message of a subagent, as the result of a tool.
func resultOf(m agui.Message) tools.Result {
	result := tools.Result{IsError: m.Error != ""}
	if m.Content.IsText() {
		result.Content = m.Content.Text()
	} else {
		result.Parts = prompt.Parts(m.Content)
	}
	return result
}

// withReason adds the approver's reason to a text for the model, quoted, so that it cannot be taken
// for the text itself.
func withReason(text, reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		return text
	}
	quoted, err := json.Marshal(reason)
	if err != nil { // a string can always be encoded
		return text
	}
	return fmt.Sprintf("%s Reason: %s", text, quoted)
}

// editedArguments returns the edited arguments for the done record, by the ID of the call; nil =
// the approver did not edit them. Snapshots replace the arguments in the conversation by them.
func editedArguments(in runs.ToolCall, call agui.ToolCall) map[string]string {
	if in.Decision == nil || in.Decision.Kind != runs.DecisionEdit {
		return nil
	}
	return map[string]string{call.ID: call.Arguments}
}

// decisionRecord returns the decision for the done record; nil = there was none. It refers to the
// proposals with the content, and has the approval for further calls ("remember").
func decisionRecord(in runs.ToolCall, tool, arguments string) *stream.Decided {
	d := in.Decision
	if d == nil {
		return nil
	}
	decided := &stream.Decided{CallID: d.CallID, Kind: string(d.Kind), Question: d.Question, Digest: d.Digest, Proposal: d.Proposal}
	for _, v := range in.Votes {
		decided.Votes = append(decided.Votes, stream.Vote{Digest: v.Digest, Proposal: v.Proposal})
	}
	if in.RememberedRule != "" {
		// The approval covers further calls under the digest of its rule; without Args it covers
		// all arguments.
		decided.Remembered = &stream.Remembered{Tool: tool, Rule: in.RememberedRule}
		if d.Remember == runs.RememberArguments {
			decided.Remembered.Args = runs.CanonicalDigest(arguments)
		}
	}
	return decided
}
