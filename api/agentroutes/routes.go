package agentroutes

import (
	"log/slog"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
)

// Routes serves the definitions of agents. It is safe for concurrent use.
type Routes struct {
	problem.Writer
	request.Reader

	Catalog *catalog.Catalog // watched
	// Tools knows the tools that workers have announced. nil = none.
	Tools Tools
	// Known are the names in the folder of definitions: its workers know them.
	Known  agents.Names
	Logger *slog.Logger
}

// Register adds the routes. administers is middleware for those that change what all tenants share.
func (s *Routes) Register(v1 *gin.RouterGroup, administers gin.HandlerFunc) {
	v1.GET("/agents", s.listAgents)
	v1.GET("/agents/:agent", s.showAgent)
	v1.PUT("/agents/:agent", administers, s.putAgent)
	v1.GET("/agents/:agent/revisions", s.listRevisions)
	v1.GET("/agents/:agent/revisions/:revision", s.showRevision)
	v1.GET("/agents/:agent/revisions/:revision/diff", s.diffRevision)
}

// Tools knows the tools that workers have announced.
type Tools interface {
	// Missing returns the tools of an agent that no worker has.
	Missing(tools []string) []string
	// Known returns the names that workers have announced.
	Known() agents.Names
}
