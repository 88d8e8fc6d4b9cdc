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

// Results of calls that were not made.
const (
	callRejected = "A person did not approve this call. It was not made."
	callExpired  = "Nobody approved this call in time. It was not made."
	callSkipped  = "This call was left out, since nobody decided about it in time."
	callGivenUp  = "Whoever was asked to approve this call gave no answer. It was not made."
)

// executeDecision carries out the decision about a call. No outcome means that the call is made,
// with the arguments that were approved or edited.
func (a *Activities) executeDecision(ctx context.Context, in runs.ToolCall, call *agui.ToolCall) (tools.Result, runs.Outcome, error) {
	d := in.Decision
	if d == nil || in.Question > 0 { // the tool handles the answer to its question
		return tools.Result{}, "", nil
	}
	said := &stream.Decision{}
	if d.Input > 0 {
		var err error
		if said, err = a.Log.Decision(ctx, d.Input); err != nil {
			return tools.Result{}, "", err
		}
	}
	switch d.Kind {
	case runs.DecisionApprove, runs.DecisionEdit:
		if d.Kind == runs.DecisionEdit {
			call.Arguments = string(said.Args)
		}
		if runs.DigestArgs(call.Arguments) != d.Args {
			return tools.Result{}, "", temporal.NewNonRetryableApplicationError("the call's arguments are not those that were approved", runs.CodeInternal, nil)
		}
		return tools.Result{}, "", nil
	case runs.DecisionAnswer, runs.DecisionToolResult:
		if said.Result == nil {
			return tools.Failed(callGivenUp), runs.OutcomeError, nil
		}
		return resultOf(*said.Result), runs.OutcomeSuccess, nil
	case runs.DecisionReject:
		return tools.Failed(withReason(callRejected, said.Reason)), runs.OutcomeError, nil
	case runs.DecisionExpire:
		return tools.Failed(expired(in.OnExpiry)), runs.OutcomeError, nil
	default:
		return tools.Failed(callGivenUp), runs.OutcomeError, nil
	}
}

// expired returns the result of a call whose approval expired, as the rule defines it.
func expired(then runs.OnExpiry) string {
	if then == runs.OnExpirySkip {
		return callSkipped
	}
	return callExpired
}

// resultOf returns a tool message as the result of a tool.
func resultOf(m agui.Message) tools.Result {
	result := tools.Result{IsError: m.Error != ""}
	if m.Content.IsText() {
		result.Content = m.Content.Text()
	} else {
		result.Parts = prompt.Parts(m.Content)
	}
	return result
}

func withReason(what, reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		return what
	}
	quoted, err := json.Marshal(reason)
	if err != nil { // a string can always be encoded
		return what
	}
	return fmt.Sprintf("%s They said: %s", what, quoted)
}

// editedArguments returns the call with the arguments of an approver; nil = they were not edited.
func editedArguments(in runs.ToolCall, call agui.ToolCall) map[string]string {
	if in.Decision == nil || in.Decision.Kind != runs.DecisionEdit {
		return nil
	}
	return map[string]string{call.ID: call.Arguments}
}

// decisionRecord returns what the log keeps of a decision about a call; nil = there was none.
func decisionRecord(in runs.ToolCall, tool, arguments string) *stream.Decided {
	d := in.Decision
	if d == nil {
		return nil
	}
	decided := &stream.Decided{CallID: d.CallID, Kind: string(d.Kind), Question: d.Question, Digest: d.Digest, Proposal: d.Input}
	for _, v := range in.Votes {
		decided.Votes = append(decided.Votes, stream.Vote{Digest: v.Digest, Proposal: v.Input})
	}
	if in.Remember != "" {
		decided.Remembered = &stream.Remembered{Tool: tool, Rule: in.Remember}
		if d.Remember == runs.RememberArguments {
			decided.Remembered.Args = canonicalDigest(arguments)
		}
	}
	return decided
}
