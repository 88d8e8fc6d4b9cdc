package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
)

// Agent is a definition as clients see it. Instructions stay inside.
type Agent struct {
	Name         string                 `json:"name"`
	Description  string                 `json:"description,omitempty"`
	Model        string                 `json:"model"`
	Tools        []string               `json:"tools,omitempty"`
	Revision     string                 `json:"revision"`
	Capabilities agui.AgentCapabilities `json:"capabilities"`
	// UnavailableTools are those that no worker has just now: runs that begin wait for one.
	UnavailableTools []string `json:"unavailableTools,omitempty"`
}

// Tools knows which tools there are workers for.
type Tools interface {
	// Missing returns those of an agent's tools that no worker has.
	Missing(tools []string) []string
}

func (s *Server) listAgents(c *gin.Context) {
	list := []Agent{}
	for _, p := range s.Catalog.List() {
		list = append(list, s.describe(p))
	}
	c.JSON(http.StatusOK, gin.H{"agents": list})
}

func (s *Server) showAgent(c *gin.Context) {
	p, err := s.Catalog.Current(segment(c, "agent"))
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.Header("ETag", etag(p.Revision))
	c.JSON(http.StatusOK, s.describe(p))
}

func (s *Server) describe(p catalog.Published) Agent {
	a := Agent{
		Name: p.Name, Description: p.Description, Model: p.Model, Tools: p.Tools, Revision: p.Revision,
		Capabilities: capabilities(p),
	}
	if s.Tools != nil {
		a.UnavailableTools = s.Tools.Missing(p.Tools)
	}
	return a
}
