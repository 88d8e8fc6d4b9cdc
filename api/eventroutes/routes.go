package eventroutes

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/source"
)

// Routes serves events, webhooks of other systems, and waits. It is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	// Store takes events. nil = all routes are missing.
	Store  *events.Store
	Waits  *events.Waits
	Access *access.Guard
	// Sources has the webhooks; nil = there are none.
	Sources *source.Set
	// Rates bounds the requests to webhooks.
	Rates *quota.Rates
}

// RegisterWebhooks adds the route of webhooks, whose requests have a signature in place of credentials.
// Register it before authentication and CORS. record is middleware that records the event in the audit
// log.
func (r *Routes) RegisterWebhooks(routes gin.IRoutes, record gin.HandlerFunc) {
	if r.Store == nil {
		return
	}
	routes.POST(source.WebhookPath+":source", record, r.Handle(r.receiveWebhook))
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	if r.Store == nil {
		return
	}
	v1.POST("/events", r.Handle(r.sendEvents))
	v1.GET("/waits", r.Handle(r.listWaits))
}
