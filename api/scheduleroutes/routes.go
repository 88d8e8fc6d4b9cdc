package scheduleroutes

import (
	"errors"

	"github.com/gin-gonic/gin"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream"
)

// Routes serves the schedules of tenants. All fields are required. It has no state of its own, and
// is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	Schedules *schedules.Store
	Clock     *schedules.Scheduler
	Catalog   *catalog.Catalog // Catalog.Watch must be running
	Log       *stream.Log
	Temporal  client.Client
}

// Register adds the routes to the group /v1, which authenticates.
func (s *Routes) Register(v1 *gin.RouterGroup) {
	v1.POST("/schedules", s.createSchedule)
	v1.GET("/schedules", s.listSchedules)
	v1.GET("/schedules/:schedule", s.showSchedule)
	v1.PUT("/schedules/:schedule", s.changeSchedule)
	v1.DELETE("/schedules/:schedule", s.deleteSchedule)
	v1.POST("/schedules/:schedule/pause", s.onSchedule(s.Clock.Pause))
	v1.POST("/schedules/:schedule/resume", s.onSchedule(s.Clock.Resume))
	v1.POST("/schedules/:schedule/trigger", s.triggerSchedule)
}

// Refuse answers with the problem of an error, like problem.Writer.Refuse. The 404 for an unknown
// schedule gets the ID in the path.
func (s *Routes) Refuse(c *gin.Context, err error) {
	if errors.Is(err, schedules.ErrUnknown) {
		err = problem.Unknown("schedule", request.Segment(c, "schedule"))
	}
	s.Writer.Refuse(c, err)
}
