package api

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/internal/auth"
)

// Routes returns all routes of the server.
func (s *Server) Routes() gin.RoutesInfo { return s.routes().Routes() }

// AuditAction returns the action of a route in the audit log.
var AuditAction = auditAction

// TakeTurn takes a turn of a tenant to read the past of a thread. The caller calls end.
func (s *Server) TakeTurn(ctx context.Context, tenant string) (end func(), err error) {
	return s.streams.Turn(auth.With(ctx, auth.Principal{Tenant: tenant}))
}
