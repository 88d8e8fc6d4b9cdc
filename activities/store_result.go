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

// Keep is tool.result.v1: it writes a result that came by signal to the log, and returns the
// decision that refers to it. An invalid result fails for good.
func (a *Activities) Keep(ctx context.Context, in runs.StoreResult, said runs.ToolResult) (d runs.Decision, err error) {
	ctx = inRun(ctx, in.Run, "", "")
	defer contain(ctx, &err)
	work, leave, err := a.attend(ctx)
	if err != nil {
		return d, fail(ctx, err)
	}
	defer leave()
	d, err = a.storeResult(work, runOf(in.Run), said)
	return d, fail(ctx, err)
}

func (a *Activities) storeResult(ctx context.Context, run stream.Run, said runs.ToolResult) (runs.Decision, error) {
	id, err := json.Marshal(said.CallID)
	if err != nil {
		return runs.Decision{}, err
	}
	m, err := agui.DecodeToolResult(id, said.Content, said.Error)
	if _, wrong := errors.AsType[*agui.DecodeError](err); wrong {
		return runs.Decision{}, temporal.NewNonRetryableApplicationError("the result is neither text nor parts", "invalid_tool_result", nil)
	}
	if err != nil {
		return runs.Decision{}, err
	}
	content, digest := stream.ClientResult(m)
	content.Channel = "signal"
	p, err := a.Log.ProposeDecision(ctx, run, digest, content)
	return runs.Decision{CallID: said.CallID, Kind: runs.DecisionToolResult, Digest: p.Digest, Input: p.Seq}, err
}
