package activities

import (
	"context"
	"encoding/json"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// Keep is tool.result.v1: it puts a result that came by signal into the log, and returns the decision that
// refers to it. One that is none fails for good.
func (a *Activities) Keep(ctx context.Context, in workflows.StoreResult, said workflows.ToolResult) (d workflows.Decision, err error) {
	ctx = inRun(ctx, in.Run, "", "")
	defer contain(ctx, &err)
	work, leave, err := a.attend(ctx)
	if err != nil {
		return d, fail(ctx, err)
	}
	defer leave()
	d, err = a.keep(work, runOf(in.Run), said)
	return d, fail(ctx, err)
}

func (a *Activities) keep(ctx context.Context, run stream.Run, said workflows.ToolResult) (workflows.Decision, error) {
	id, err := json.Marshal(said.CallID)
	if err != nil {
		return workflows.Decision{}, err
	}
	m, err := agui.DecodeToolResult(id, said.Content, said.Error)
	if _, wrong := errors.AsType[*agui.DecodeError](err); wrong {
		return workflows.Decision{}, temporal.NewNonRetryableApplicationError("the result is neither text nor parts", "invalid_tool_result", nil)
	}
	if err != nil {
		return workflows.Decision{}, err
	}
	content, digest := stream.ClientResult(m)
	content.Channel = "signal"
	p, err := a.Log.ProposeDecision(ctx, run, digest, content)
	return workflows.Decision{CallID: said.CallID, Kind: workflows.DecisionToolResult, Digest: p.Digest, Input: p.Seq}, err
}
