package sockets

import (
	"context"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/stream"
)

// decideInSlot makes a decision, or delivers a result, by calling do with the frame's thread. The
// result of do becomes the member result of the ack. The change completes even if the client closes
// the WebSocket (changeInSlot).
func (s *session) decideInSlot(ctx context.Context, r *clientFrame, do func(context.Context, stream.Thread) (any, error)) error {
	thread, err := access.Address(ctx, r.ThreadID)
	if err != nil {
		return err
	}
	return s.changeInSlot(ctx, func(ctx context.Context) (err error) {
		r.result, err = do(ctx, thread)
		return err
	})
}

// decide serves a decide frame, the counterpart of POST …/approvals/{approval}.
func (s *session) decide(ctx context.Context, r *clientFrame) error {
	decision, err := r.decision()
	if err != nil {
		return err
	}
	return s.decideInSlot(ctx, r, func(ctx context.Context, thread stream.Thread) (any, error) {
		return s.Decisions.Decide(request.WithChannel(ctx, request.ChannelSocket), thread, r.ApprovalID, decision)
	})
}

// decision returns the decision in the frame, and checks its members.
func (r *clientFrame) decision() (decisions.Request, error) {
	req := decisions.Request{Decision: r.Decision, Args: r.Args, Content: r.Content, Reason: r.Reason, Remember: r.Remember}
	return req, req.Check("")
}

// toolResult serves a tool_result frame, the counterpart of POST …/tool-results.
func (s *session) toolResult(ctx context.Context, r *clientFrame) error {
	result := decisions.ToolResult{ToolCallID: r.ToolCallID, Content: r.Content, Error: r.Error}
	return s.decideInSlot(ctx, r, func(ctx context.Context, thread stream.Thread) (any, error) {
		return s.Decisions.SubmitResult(ctx, thread, result, request.ChannelSocket)
	})
}
