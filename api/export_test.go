package api

import "github.com/gin-gonic/gin"

// Routes returns all routes of the server.
func (s *Server) Routes() gin.RoutesInfo { return s.routes().Routes() }

// AuditAction returns the action of a route in the audit log.
var AuditAction = auditAction
