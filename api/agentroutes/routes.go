package agentroutes

import (
	"log/slog"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/control/quota"
)

// Routes serves the definitions of agents. All exported fields but Tools, Known and
// Directory are required. It is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	Catalog *catalog.Catalog // Catalog.Watch must be running
	// Tools knows the tools that workers have announced. nil = no tool is known, and no warning is
	// given.
	Tools Tools
	// Known returns the names in the folder of definitions of this process. Using them causes no
	// warning. It is called concurrently. nil = there are none.
	Known func() agents.Names
	// Directory returns the directory of definitions of this process. It is called concurrently. nil =
	// there is none.
	Directory func() Directory
	Logger    *slog.Logger
	// Meter has the quotas of agents and of their definitions.
	Meter  *quota.Meter
	Access *access.Guard

	// publishing lets one request after the other check the quotas and publish.
	publishing sync.Mutex
}

// Register adds the routes to the group /v1, which authenticates.
func (r *Routes) Register(v1 *gin.RouterGroup) {
	v1.GET("/agents", r.Handle(r.listAgents))
	v1.POST("/agents/validate", r.Handle(r.validateAgent))
	v1.GET("/schemas/agent", r.Handle(r.showSchema))
	v1.GET("/agents/:agent", r.Handle(r.showAgent))
	v1.PUT("/agents/:agent", r.Handle(r.putAgent))
	v1.POST("/agents/:agent/drafts", r.Handle(r.putDraft))
	v1.GET("/agents/:agent/revisions", r.Handle(r.listRevisions))
	v1.GET("/agents/:agent/revisions/:revision", r.Handle(r.showRevision))
	v1.GET("/agents/:agent/revisions/:revision/diff", r.Handle(r.diffRevision))
}

// Tools knows the tools that workers have announced. It is safe for concurrent use, and does not
// block.
type Tools interface {
	// Missing returns those of an agent's tools that no worker has.
	Missing(tools []string) []string
	// Known returns the names that workers have announced.
	Known() agents.Names
}
