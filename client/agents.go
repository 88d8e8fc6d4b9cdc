package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/agui"
)

// Agent is an agent with its current revision.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model"`
	// FallbackModels are the models after Model, in the order in which a failed call attempts them.
	FallbackModels []string `json:"fallbackModels"`
	// Remote is the host of the server of a remote agent, which has no model; "" = the agent is not
	// remote.
	Remote string `json:"remote"`
	// Scope tells to whom the agent belongs. Tenant is set for ScopeTenant.
	Scope  Scope    `json:"scope"`
	Tenant string   `json:"tenant,omitempty"`
	Tools  []string `json:"tools"`
	// Agents are the names of the agents that the definition names: subagents, and those of handoffs
	// and steps.
	Agents       []string               `json:"agents"`
	Revision     string                 `json:"revision"`
	Capabilities agui.AgentCapabilities `json:"capabilities"`
	// UnavailableTools are the agent's tools that no worker announces at the moment.
	UnavailableTools []string `json:"unavailableTools"`
	// Warnings are about names in the definition that no worker has, such as MCP servers, scripts and
	// model providers without a key. Those of PutAgent and PutDraft are about unknown tools, too.
	Warnings []string `json:"warnings"`
	// Triggers start runs for events. Only Agent returns them, and only to callers that may read the
	// definition.
	Triggers []AgentTrigger `json:"triggers"`
}

// AgentTrigger starts a run of an agent for each event that it matches.
type AgentTrigger struct {
	Event string `json:"event"` // the type of the events
	// Match has the values that the data of the event must have, by their paths.
	Match map[string]any `json:"match"`
	// Thread is a template of the ID of the thread; "" = each event has a thread of its own.
	Thread string `json:"thread"`
	RunAs  string `json:"runAs"` // the service as which the run acts; "" = an anonymous caller
	// OnBusy is what happens if the thread has another active run; "" = enqueue.
	OnBusy string `json:"onBusy"`
}

// Scope tells to whom an agent belongs. In a request, "" is the default of the server: a publication
// is for the platform, and a read finds the tenant's agent, or else the platform's.
type Scope string

// Values of Scope.
const (
	ScopePlatform Scope = "platform" // all tenants
	ScopeTenant   Scope = "tenant"   // the tenant of the caller
)

// query adds the scope to the parameters of a request, and returns them.
func (s Scope) query(parameters url.Values) url.Values {
	if s == "" {
		return parameters
	}
	if parameters == nil {
		parameters = url.Values{}
	}
	parameters.Set("scope", string(s))
	return parameters
}

// AgentList is the response of Client.Agents.
type AgentList struct {
	Items []Agent `json:"items"`
	// Problems tell which definitions of the server's directory are not published, and why, for callers
	// who may publish agents.
	Problems []string `json:"problems,omitempty"`
}

func agentPath(agent string, rest ...string) string {
	return path(append([]string{"v1", "agents", agent}, rest...)...)
}

// Agents returns all agents of the platform and of the tenant of the caller.
func (c *Client) Agents(ctx context.Context) (Document[AgentList], error) {
	return document[AgentList](ctx, c, get("/v1/agents", nil))
}

// Agent returns one agent.
func (c *Client) Agent(ctx context.Context, scope Scope, agent string) (Document[Agent], error) {
	return document[Agent](ctx, c, get(agentPath(agent), scope.query(nil)))
}

// Publication are the options of Client.PutAgent.
type Publication struct {
	Scope Scope // "" = ScopePlatform
	// Expected is the revision that must be current, or else the server answers 412; "" = any.
	Expected string
	// Note says something about the change, for the list of revisions. At most 1,000 bytes.
	Note string
}

// PutAgent publishes a definition in YAML.
func (c *Client) PutAgent(ctx context.Context, agent string, definition []byte, p Publication) (Document[Agent], error) {
	query := url.Values{}
	if p.Note != "" {
		query.Set("note", p.Note)
	}
	r := request{method: http.MethodPut, path: agentPath(agent), query: p.Scope.query(query), body: definition}
	r.header = map[string]string{"Accept": jsonType, "Content-Type": "application/yaml"}
	if p.Expected != "" {
		r.header["If-Match"] = `"` + p.Expected + `"`
	}
	return document[Agent](ctx, c, r)
}

// PutDraft stores a definition in YAML as a draft, which never becomes current, by default for the
// platform. RunRevision runs it by its revision.
func (c *Client) PutDraft(ctx context.Context, scope Scope, agent string, definition []byte) (Document[Agent], error) {
	r := request{method: http.MethodPost, path: agentPath(agent, "drafts"), query: scope.query(nil), body: definition}
	r.header = map[string]string{"Accept": jsonType, "Content-Type": "application/yaml"}
	return document[Agent](ctx, c, r)
}

// Validation is the result of a check of a definition.
type Validation struct {
	Valid    bool      `json:"valid"`
	Errors   []Mistake `json:"errors"`
	Warnings []Mistake `json:"warnings"` // names that the server does not know, and a worker may know
	// Revision is what a valid definition would have.
	Revision string `json:"revision"`
}

// ValidateAgent checks a definition in YAML as PutAgent would, and changes nothing. Mistakes in the
// definition are no error.
func (c *Client) ValidateAgent(ctx context.Context, scope Scope, definition []byte) (Document[Validation], error) {
	r := request{method: http.MethodPost, path: "/v1/agents/validate", query: scope.query(nil), body: definition}
	r.header = map[string]string{"Accept": jsonType, "Content-Type": "application/yaml"}
	return document[Validation](ctx, c, r)
}

// AgentSchema returns the JSON Schema of definitions of agents.
func (c *Client) AgentSchema(ctx context.Context) ([]byte, error) {
	r := get("/v1/schemas/agent", nil)
	r.header["Accept"] = "application/schema+json, application/json"
	return c.send(ctx, r)
}

// Revision is a publication of a revision of an agent.
type Revision struct {
	Revision    string    `json:"revision"`
	PublishedAt time.Time `json:"publishedAt"`
	Source      string    `json:"source"` // directory or put
	Current     bool      `json:"current"`
	Scope       Scope     `json:"scope"`
	// By is the subject that has published the revision over HTTP, and ByTenant its tenant.
	By       string `json:"by,omitempty"`
	ByTenant string `json:"byTenant,omitempty"`
	Note     string `json:"note,omitempty"` // what that subject says about the change
}

// Revisions returns a page of the publications of an agent, newest first.
func (c *Client) Revisions(ctx context.Context, scope Scope, agent string, p Paging) (Document[Page[Revision]], error) {
	return document[Page[Revision]](ctx, c, get(agentPath(agent, "revisions"), scope.query(p.query())))
}

// Definition returns a revision of an agent in its canonical form, as YAML.
func (c *Client) Definition(ctx context.Context, scope Scope, agent, revision string) ([]byte, error) {
	r := get(agentPath(agent, "revisions", revision), scope.query(nil))
	r.header["Accept"] = "application/yaml"
	return c.send(ctx, r)
}

// DefinitionJSON returns a revision of an agent in its canonical form, as JSON.
func (c *Client) DefinitionJSON(ctx context.Context, scope Scope, agent, revision string) ([]byte, error) {
	return c.send(ctx, get(agentPath(agent, "revisions", revision), scope.query(nil)))
}

// Diff returns the changes of a revision as a unified diff of YAML. It compares with the revision
// from; "" = the one that it replaced.
func (c *Client) Diff(ctx context.Context, scope Scope, agent, revision, from string) ([]byte, error) {
	query := url.Values{}
	if from != "" {
		query.Set("from", from)
	}
	r := get(agentPath(agent, "revisions", revision, "diff"), scope.query(query))
	r.header["Accept"] = "text/plain, application/json"
	return c.send(ctx, r)
}
