package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/fileroutes"
)

// registerFiles adds the routes of files to the group /v1.
func (s *Server) registerFiles(v1 *gin.RouterGroup) {
	if s.attachments == nil {
		return
	}
	routes := &fileroutes.Routes{Writer: s.Writer, Attachments: s.attachments, Deletion: s.deletion, Enter: s.streams.Enter}
	routes.Register(v1)
}

// attachFiles stores and checks the files of an input's new messages, before the log refers to them.
func (s *Server) attachFiles(ctx context.Context, in *preparedInput, plan runPlan) error {
	if s.attachments == nil {
		return nil
	}
	pointer := func(id string) string { return messagePointer(in.input, id) }
	return s.attachments.Attach(ctx, in.run.Thread, plan.input.Accepted, plan.extracted, pointer)
}
