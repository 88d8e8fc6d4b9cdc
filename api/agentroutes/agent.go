package agentroutes

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/request"
)

// Agent is the answer about an agent. The instructions are only in the definition, which the route
// of the revision returns.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Model       string `json:"model"`
	// FallbackModels are the models after Model, in the order in which a failed call attempts them.
	FallbackModels []string `json:"fallbackModels,omitempty"`
	// Remote is the host of the server of a remote agent.
	Remote string `json:"remote,omitempty"`
	// Scope tells to whom the agent belongs. Tenant is set for ScopeTenant.
	Scope  Scope  `json:"scope"`
	Tenant string `json:"tenant,omitempty"`
	// Tools are the names and patterns in the definition, with prefixes for subagents, handoffs and
	// client tools. Revision is the SHA-256 of the definition. Capabilities are AG-UI's.
	Tools        []string               `json:"tools,omitempty"`
	Revision     string                 `json:"revision"`
	Capabilities agui.AgentCapabilities `json:"capabilities"`
	// UnavailableTools are the agent's tools that no worker has announced, and subagents and agents
	// of handoffs that are not published. A run of the agent waits for them, for a limited time.
	UnavailableTools []string `json:"unavailableTools,omitempty"`
	// Agents are the names of the agents that the definition names: subagents, and those of handoffs
	// and steps.
	Agents []string `json:"agents,omitempty"`
	// Steps are those of a pipeline. Only the answer about one agent has them.
	Steps []Step `json:"steps,omitempty"`
	// Triggers start runs for events. Only the answer about one agent has them, for callers that may
	// read the definition.
	Triggers []Trigger `json:"triggers,omitempty"`
	// Warnings are about names in the definition that no worker has: MCP servers, scripts, and model
	// providers without a key. The answer to a publication is about the names that this process does
	// not know, tools included.
	Warnings []string `json:"warnings,omitempty"`
}

// showAgent serves GET /v1/agents/{agent}: the agent as its current revision defines it, or as the
// revision in the parameter does, which a run may have. The ETag is that revision, for If-Match. An
// unknown agent or revision is a 404.
func (r *Routes) showAgent(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	p, err := r.requested(ctx, c)
	if err != nil {
		return err
	}
	answer := r.describeLive(p, r.liveNames(p.Tenant))
	answer.Steps, answer.Triggers = r.steps(ctx, p), r.triggers(ctx, p)
	c.Header("ETag", etag(p.Revision))
	return request.WriteJSON(c, http.StatusOK, answer)
}

// requested returns the agent in the path, in its current revision or that of the parameter.
func (r *Routes) requested(ctx context.Context, c *gin.Context) (catalog.Published, error) {
	revision := c.Query("revision")
	if revision == "" {
		return r.current(c)
	}
	caller, err := request.Principal(ctx)
	if err != nil {
		return catalog.Published{}, err
	}
	tenant := catalog.Referrer(caller.Tenant, revision)
	d, err := r.Catalog.Revision(ctx, tenant, request.Segment(c, "agent"), revision)
	return catalog.Published{Definition: d, Revision: revision, Tenant: tenant}, err
}

// describe returns the answer about a published agent, by what this process knows now: other
// published agents to which its definition may refer, and the tools that workers have announced.
func (r *Routes) describe(p catalog.Published) Agent {
	others, missing := r.subagents(p)
	a := Agent{
		Name: p.Name, Description: p.Description, Model: p.Model, FallbackModels: p.Fallback.Models, Remote: p.RemoteHost(), Scope: scopeOf(p.Tenant), Tenant: p.Tenant, Tools: p.Tools, Agents: p.UsedAgents(), Revision: p.Revision,
		Capabilities: capabilities(p, others, involvementOf(p.Definition, func(name string) *agents.Definition { return r.definition(p.Tenant, name) })),
	}
	if r.Tools != nil {
		a.UnavailableTools = r.Tools.Missing(p.Tools)
	}
	a.UnavailableTools = append(a.UnavailableTools, missing...)
	return a
}

// warnings returns a warning for each unknown name in the definition of an agent of a tenant.
func (r *Routes) warnings(tenant string, d *agents.Definition) []string {
	var all []string
	for _, e := range r.unknownNames(tenant, d.Name, d) {
		all = append(all, e.Reason)
	}
	return all
}

// unknownNames returns an error for each name in the definition of an agent of a tenant that this
// process does not know: not a built-in, not in the folder of definitions, not announced, not
// published. A worker may know the name, so these are warnings. Without Tools it returns none.
func (r *Routes) unknownNames(tenant, agent string, d interface {
	UnknownNames(known agents.Names) []*agents.DefinitionError
},
) []*agents.DefinitionError {
	if r.Tools == nil {
		return nil
	}
	return d.UnknownNames(r.knownNames(tenant, agent))
}

// knownNames returns the names that this process knows for an agent of a tenant. It needs Tools.
func (r *Routes) knownNames(tenant, agent string) agents.Names {
	published := agents.Names{Agents: []string{agent}}
	for _, p := range r.Catalog.List(tenant) {
		published.Agents = append(published.Agents, p.Name)
	}
	announced := r.Tools.Known()
	known := agents.BuiltIn().With(announced).With(published)
	if announced.Providers != nil {
		known.Providers = announced.Providers
	}
	if r.Known != nil {
		known = known.With(r.Known())
	}
	return known
}

// liveNames returns the names that agents of a tenant can use now: those that workers announce, and
// the published agents.
func (r *Routes) liveNames(tenant string) agents.Names {
	if r.Tools == nil {
		return agents.Names{}
	}
	known := r.Tools.Known()
	known.Tools, known.Confidential = append(known.Tools, agents.BuiltIn().Tools...), true
	for _, p := range r.Catalog.List(tenant) {
		known.Agents = append(known.Agents, p.Name)
	}
	return known
}

// describeLive describes an agent, with warnings about names that live lacks and UnavailableTools
// does not list.
func (r *Routes) describeLive(p catalog.Published, live agents.Names) Agent {
	a := r.describe(p)
	if r.Tools == nil {
		return a
	}
	listed := map[string]bool{} // by key in the definition
	for i, tool := range p.Tools {
		listed[fmt.Sprintf("tools[%d]", i)] = slices.Contains(a.UnavailableTools, tool)
	}
	for _, e := range p.UnknownNames(live) {
		if !listed[e.Key] {
			a.Warnings = append(a.Warnings, e.Reason)
		}
	}
	return a
}

// definition returns the current definition of the agent that a name means for a tenant; nil = it is
// not published.
func (r *Routes) definition(tenant, name string) *agents.Definition {
	p, err := r.Catalog.Current(tenant, name)
	if err != nil {
		return nil
	}
	return p.Definition
}

// subagents returns the published subagents of an agent. missing has the names, as tools, of its
// subagents and agents of handoffs that are not published.
func (r *Routes) subagents(p catalog.Published) (others []agui.SubagentInfo, missing []string) {
	for _, name := range agents.Subagents(p.Tools) {
		d, err := r.Catalog.Current(p.Tenant, name)
		if err != nil {
			missing = append(missing, agents.AgentPrefix+name)
			continue
		}
		others = append(others, agui.SubagentInfo{Name: name, Description: d.Description})
	}
	for _, name := range agents.Handoffs(p.Tools) {
		if _, err := r.Catalog.Current(p.Tenant, name); err != nil {
			missing = append(missing, agents.HandoffPrefix+name)
		}
	}
	return others, missing
}
