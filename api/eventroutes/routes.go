package eventroutes

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/events"
)

// Routes serves events and waits. All fields are required. It is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	Store  *events.Store
	Waits  *events.Waits
	Access *access.Guard
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.POST("/events", r.Handle(r.sendEvents))
	v1.GET("/waits", r.Handle(r.listWaits))
}
