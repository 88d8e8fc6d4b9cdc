package api

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/eventroutes"
)

// registerEvents adds the routes of events and of the runs that wait for them to the group /v1, unless
// the configuration has none.
func (s *Server) registerEvents(v1 *gin.RouterGroup) {
	if s.Events == nil {
		return
	}
	routes := &eventroutes.Routes{Writer: s.Writer, Reader: s.Reader, Store: s.Events, Waits: s.Waits, Access: s.access}
	routes.Register(v1)
}
