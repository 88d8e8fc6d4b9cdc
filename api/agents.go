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
}

func (s *Server) listAgents(c *gin.Context) {
	list := []Agent{}
	for _, p := range s.Catalog.List() {
		list = append(list, describe(p))
	}
	c.JSON(http.StatusOK, gin.H{"agents": list})
}

func (s *Server) showAgent(c *gin.Context) {
	p, err := s.Catalog.Current(segment(c, "agent"))
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, describe(p))
}

func describe(p catalog.Published) Agent {
	return Agent{
		Name: p.Name, Description: p.Description, Model: p.Model, Tools: p.Tools, Revision: p.Revision,
		Capabilities: capabilities(p),
	}
}
