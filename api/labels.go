package api

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/process/telemetry"
)

// labelRequest is middleware that adds the caller's tenant, and the thread, run and agent in the
// path, to the request's span and log lines. It leaves out invalid IDs, which the handler refuses
// later. It runs after authenticate.
func (s *Server) labelRequest(c *gin.Context) {
	labels := telemetry.Run{}
	if p, ok := auth.From(c.Request.Context()); ok {
		labels.Tenant = p.Tenant
	}
	for name, member := range map[string]*string{"thread": &labels.Thread, "run": &labels.ID, "agent": &labels.Agent} {
		if value := request.Segment(c, name); request.CheckID("", value) == nil {
			*member = value
		}
	}
	c.Request = c.Request.WithContext(telemetry.WithRun(c.Request.Context(), labels))
}
