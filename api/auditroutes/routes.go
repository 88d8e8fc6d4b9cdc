package auditroutes

import (
	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/audit/store"
)

// Audit has the audit log and the legal holds. All fields are required.
type Audit struct {
	Log    *store.Log
	Writer *store.Writer
	Holds  *store.Holds
}

// Routes serves the audit log and legal holds. All fields are required. It has no state of its own,
// and is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	Audit  *Audit
	Access *access.Guard
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.GET("/audit", r.Handle(r.listEntries))
	for _, path := range []string{"/hold", "/threads/:thread/hold"} {
		v1.GET(path, r.Handle(r.showHold))
		v1.PUT(path, r.Handle(r.putHold))
		v1.DELETE(path, r.Handle(r.deleteHold))
	}
}
