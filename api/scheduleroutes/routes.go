package scheduleroutes

import (
	"errors"
	"sync"

	"github.com/gin-gonic/gin"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream"
)

// Routes serves the schedules of tenants. All exported fields but Principals and Counter are
// required. It is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	Schedules *schedules.Store
	Scheduler *schedules.Scheduler
	Catalog   *catalog.Catalog // Catalog.Watch must be running
	Log       *stream.Log
	Temporal  client.Client
	Access    *access.Guard
	// Principals has the services as whom schedules may run.
	Principals *principals.Principals
	// Counter has the counts of Meter. nil = schedules have no quotas.
	Counter *schedules.Counter
	Meter   *quota.Meter
	Rates   *quota.Rates

	// writing lets one request after the other check the quotas and write a schedule.
	writing sync.Mutex
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.POST("/schedules", r.Handle(r.createSchedule))
	v1.GET("/schedules", r.Handle(r.listSchedules))
	v1.GET("/schedules/:schedule", r.Handle(r.showSchedule))
	v1.PUT("/schedules/:schedule", r.Handle(r.changeSchedule))
	v1.DELETE("/schedules/:schedule", r.Handle(r.deleteSchedule))
	v1.POST("/schedules/:schedule/pause", r.Handle(r.scheduleCommand(r.Scheduler.Pause)))
	v1.POST("/schedules/:schedule/resume", r.Handle(r.scheduleCommand(r.Scheduler.Resume)))
	v1.POST("/schedules/:schedule/trigger", r.Handle(r.triggerSchedule))
}

// Handle is problem.Writer.Handle. The 404 for an unknown schedule gets the ID in the path.
func (r *Routes) Handle(serve func(*gin.Context) error) gin.HandlerFunc {
	return r.Writer.Handle(func(c *gin.Context) error {
		err := serve(c)
		if errors.Is(err, schedules.ErrUnknown) {
			return problem.Unknown("schedule", request.Segment(c, "schedule"))
		}
		return err
	})
}
