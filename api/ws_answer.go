package api

import (
	"context"

	"github.com/perdure/perdure/stream"
)

// answer carries out a decision or a result, and puts its answer into the ack.
func (s *session) answer(ctx context.Context, r *request, do func(context.Context, stream.Thread) (any, error)) error {
	if err := checkID("/threadId", r.ThreadID); err != nil {
		return err
	}
	thread, err := threadIn(ctx, r.ThreadID)
	if err != nil {
		return err
	}
	return s.insist(ctx, func(ctx context.Context) (err error) {
		r.result, err = do(ctx, thread)
		return err
	})
}

// decide is POST approvals.
func (s *session) decide(ctx context.Context, r *request) error {
	v, err := r.verdict()
	if err != nil {
		return err
	}
	return s.answer(ctx, r, func(ctx context.Context, thread stream.Thread) (any, error) {
		return s.server.decide(through(ctx, channelSocket), thread, r.ApprovalID, v)
	})
}

func (r *request) verdict() (verdict, error) {
	v := verdict{Decision: r.Decision, Args: r.Args, Content: r.Content, Reason: r.Reason, Remember: r.Remember}
	return v, v.check("")
}

// toolResult is POST tool-results.
func (s *session) toolResult(ctx context.Context, r *request) error {
	said := toolResult{ToolCallID: r.ToolCallID, Content: r.Content, Error: r.Error}
	return s.answer(ctx, r, func(ctx context.Context, thread stream.Thread) (any, error) {
		return s.server.takeResult(ctx, thread, said, channelSocket)
	})
}
