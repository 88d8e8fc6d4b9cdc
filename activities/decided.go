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

// What the model is told of a call that was not made.
const (
	callRejected = "A person did not approve this call. It was not made."
	callExpired  = "Nobody approved this call in time. It was not made."
	callSkipped  = "This call was left out, since nobody decided about it in time."
	callGivenUp  = "Whoever was asked to approve this call gave no answer. It was not made."
)

// decided does what was decided about a call, if it had to wait for that. No outcome means that the call
// is to be made: with exactly the arguments that were decided about, or with those that take their place.
func (a *Activities) decided(ctx context.Context, in runs.ToolCall, call *agui.ToolCall) (tools.Result, runs.Outcome, error) {
	d := in.Decision
	if d == nil || in.Question > 0 { // what a tool's question comes to is the tool's to decide
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
		return tools.Failed(because(callRejected, said.Reason)), runs.OutcomeError, nil
	case runs.DecisionExpire:
		return tools.Failed(expired(in.OnExpiry)), runs.OutcomeError, nil
	default:
		return tools.Failed(callGivenUp), runs.OutcomeError, nil
	}
}

// expired is what the agent wants the model to be told.
func expired(then runs.OnExpiry) string {
	if then == runs.OnExpirySkip {
		return callSkipped
	}
	return callExpired
}

// resultOf is a tool message as a tool's result.
func resultOf(m agui.Message) tools.Result {
	result := tools.Result{IsError: m.Error != ""}
	if m.Content.IsText() {
		result.Content = m.Content.Text()
	} else {
		result.Parts = prompt.Parts(m.Content)
	}
	return result
}

func because(what, reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		return what
	}
	quoted, err := json.Marshal(reason)
	if err != nil { // cannot be: it is a string
		return what
	}
	return fmt.Sprintf("%s They said: %s", what, quoted)
}

// editedBy is the call with the arguments that a person has put in the place of the model's; nil = nobody has.
func editedBy(in runs.ToolCall, call agui.ToolCall) map[string]string {
	if in.Decision == nil || in.Decision.Kind != runs.DecisionEdit {
		return nil
	}
	return map[string]string{call.ID: call.Arguments}
}

// decidedOf is what the log keeps of a decision about a call of a tool with some arguments; nil = there was none.
func decidedOf(in runs.ToolCall, tool, arguments string) *stream.Decided {
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
