package activities

import (
	"context"
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
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
