package api

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/scheduleroutes"
	"github.com/perdure/perdure/internal/control/schedules"
)

// registerSchedules adds the routes of schedules to the group /v1, unless the configuration has none.
func (s *Server) registerSchedules(v1 *gin.RouterGroup) {
	if s.Schedules == nil {
		return
	}
	routes := &scheduleroutes.Routes{
		Writer:     s.Writer,
		Reader:     s.Reader,
		Schedules:  s.Schedules,
		Scheduler:  &schedules.Scheduler{Temporal: s.Temporal, ParkAfter: s.ParkAfter},
		Catalog:    s.Catalog,
		Log:        s.Log,
		Temporal:   s.Temporal,
		Access:     s.access,
		Principals: s.Principals,
		Counter:    s.ScheduleCounts,
		Meter:      s.meter,
		Rates:      s.rates,
	}
	routes.Register(v1)
}
