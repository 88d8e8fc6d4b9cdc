package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/tools"
)

// StoreResult is tool.result.v1: it moves the result of a client tool call, which came to the
// workflow by signal, into the log as a proposal. It returns the decision that refers to it. A
// result that is no AG-UI content is a final error, which the workflow ignores. The same result
// again is the same proposal.
func (a *Activities) StoreResult(ctx context.Context, in runs.StoreResult, result runs.ToolResult) (runs.Decision, error) {
	return withAttempt(inRun(ctx, in.Run, "", ""), a, func(ctx context.Context) (runs.Decision, error) {
		return a.storeResult(ctx, runOf(in.Run), result)
	})
}

// clientStateChange returns the change of the state that the definition requires after a successful
// client tool call; nil = none.
func (a *Activities) clientStateChange(ctx context.Context, in runs.ToolCall, call agui.ToolCall, result tools.Result) (*stateChange, error) {
	definition, err := a.definition(ctx, in.Step)
	if err != nil {
		return nil, err
	}
	return newStateChange(definition.State, call, result, nil), nil
}

// sentResult returns the result of a client tool call that came with an input, from the
// conversation.
func sentResult(snap *snapshot.Snapshot, callID string) (tools.Result, runs.Outcome) {
	i := slices.IndexFunc(snap.Entries, func(e snapshot.Entry) bool {
		return e.Sent != "" && e.Message.Role == agui.RoleTool && e.Message.ToolCallID == callID
	})
	if i < 0 {
		return tools.Failed(callUndecided), runs.OutcomeError
	}
	return resultOf(snap.Entries[i].Message), runs.OutcomeSuccess
}

// storeResult decodes the result and writes the proposal.
func (a *Activities) storeResult(ctx context.Context, run stream.Run, result runs.ToolResult) (runs.Decision, error) {
	id, err := json.Marshal(result.CallID)
	if err != nil {
		return runs.Decision{}, err
	}
	message, err := agui.DecodeToolResult(id, result.Content, result.Error)
	if _, isInvalid := errors.AsType[*agui.DecodeError](err); isInvalid {
		return runs.Decision{}, temporal.NewNonRetryableApplicationError("the result is neither a string nor a list of content parts", "invalid_tool_result", nil)
	}
	if err != nil {
		return runs.Decision{}, err
	}
	// The digest is that of a result over HTTP, so a client may send both without a conflict.
	content, digest := stream.ClientResult(message)
	content.Channel = "signal"
	proposal, err := a.Log.ProposeResult(ctx, run, digest, content)
	return runs.Decision{CallID: result.CallID, Kind: runs.DecisionToolResult, Digest: proposal.Digest, Proposal: proposal.Seq}, err
}

// leaveToClient records the approval of a call that the client makes. The call then waits for its result.
func leaveToClient(ctx context.Context, in runs.ToolCall, call agui.ToolCall, attempt *stream.Attempt, opened uint64) (runs.ToolAnswer, error) {
	answer := runs.ToolAnswer{Outcome: runs.OutcomeInterrupt, Opened: opened, ForClient: true}
	return recordDecision(ctx, attempt, answer, &stream.Result{
		Decided: decisionRecord(in, call.Name, call.Arguments), Edited: editedArguments(in, call),
	})
}

// recordDecision writes the done record of a step that only decides an interrupt, with its answer.
func recordDecision(ctx context.Context, attempt *stream.Attempt, answer runs.ToolAnswer, result *stream.Result) (_ runs.ToolAnswer, err error) {
	if result.Answer, err = json.Marshal(answer); err != nil {
		return answer, fmt.Errorf("activities: encode answer: %w", err)
	}
	ctx, cancel := contextAfter(ctx)
	defer cancel()
	answer.Seq, err = attempt.Finish(ctx, result)
	return answer, err
}
