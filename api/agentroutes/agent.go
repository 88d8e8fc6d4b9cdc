package agentroutes

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/request"
)

// Agent is the answer about an agent, without its instructions.
type Agent struct {
	Name         string                 `json:"name"`
	Description  string                 `json:"description,omitempty"`
	Model        string                 `json:"model"`
	Tools        []string               `json:"tools,omitempty"`
	Revision     string                 `json:"revision"`
	Capabilities agui.AgentCapabilities `json:"capabilities"`
	// UnavailableTools are the tools that no worker has now, and agents that are not published.
	// Runs wait for them.
	UnavailableTools []string `json:"unavailableTools,omitempty"`
	// Warnings are the names in a published definition that this node does not know. A worker may
	// know them.
	Warnings []string `json:"warnings,omitempty"`
}

func (s *Routes) listAgents(c *gin.Context) {
	list := []Agent{}
	for _, p := range s.Catalog.List() {
		list = append(list, s.describe(p))
	}
	c.JSON(http.StatusOK, gin.H{"items": list})
}

func (s *Routes) showAgent(c *gin.Context) {
	p, err := s.Catalog.Current(request.Segment(c, "agent"))
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Header("ETag", etag(p.Revision))
	c.JSON(http.StatusOK, s.describe(p))
}

func (s *Routes) describe(p catalog.Published) Agent {
	others, missing := s.delegates(p)
	a := Agent{
		Name: p.Name, Description: p.Description, Model: p.Model, Tools: p.Tools, Revision: p.Revision,
		Capabilities: capabilities(p, others, involvementOf(p.Definition, s.definition)),
	}
	if s.Tools != nil {
		a.UnavailableTools = s.Tools.Missing(p.Tools)
	}
	a.UnavailableTools = append(a.UnavailableTools, missing...)
	return a
}

// warnings returns the names in a definition that this node does not know.
func (s *Routes) warnings(d *agents.Definition) []string {
	if s.Tools == nil {
		return nil
	}
	published := agents.Names{Agents: []string{d.Name}}
	for _, p := range s.Catalog.List() {
		published.Agents = append(published.Agents, p.Name)
	}
	var all []string
	for _, e := range d.UnknownNames(agents.BuiltIn().With(s.Known).With(s.Tools.Known()).With(published)) {
		warning := e.Reason
		if strings.HasSuffix(e.Key, "model") {
			warning += "; a worker may have it, since workers announce no providers and scripts"
		}
		all = append(all, warning)
	}
	return all
}

// definition returns the published definition of an agent; nil = there is none.
func (s *Routes) definition(name string) *agents.Definition {
	p, err := s.Catalog.Current(name)
	if err != nil {
		return nil
	}
	return p.Definition
}

// delegates returns the subagents of an agent, and the names of those, and of agents for handoffs,
// that are not published.
func (s *Routes) delegates(p catalog.Published) (others []agui.SubagentInfo, missing []string) {
	for _, name := range agents.Delegates(p.Tools) {
		d, err := s.Catalog.Current(name)
		if err != nil {
			missing = append(missing, agents.AgentPrefix+name)
			continue
		}
		others = append(others, agui.SubagentInfo{Name: name, Description: d.Description})
	}
	for _, name := range agents.Handoffs(p.Tools) {
		if _, err := s.Catalog.Current(name); err != nil {
			missing = append(missing, agents.HandoffPrefix+name)
		}
	}
	return others, missing
}
