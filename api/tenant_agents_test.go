package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/agentroutes"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/stream"
)

var (
	alphaAdmin = headersOf("ada", policy.DefaultRoles.TenantAdmin)
	betaBoss   = []string{"X-Tenant", "beta", "X-User", "gus", "X-Roles", policy.DefaultRoles.TenantAdmin}
	operator   = []string{"X-Tenant", "operations", "X-User", "ops", "X-Roles", policy.DefaultRoles.PlatformAdmin}
)

// clerkOf returns the definition of the agent clerk with instructions.
func clerkOf(instructions string) string {
	return "name: clerk\nmodel: test/m\ninstructions: " + instructions + "\n"
}

// agent decodes the answer about an agent, which must have a status.
func (a answer) agent(t *testing.T, status int) (got agentroutes.Agent) {
	t.Helper()
	a.mustStatus(t, "agent", status)
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// wantProblem checks the status and the code of a refusal.
func (a answer) wantProblem(t *testing.T, what string, status int, code string) {
	t.Helper()
	if a.status != status || a.problem.Code != code {
		t.Errorf("%s: got %d %s, want %d %s", what, a.status, a.body, status, code)
	}
}

// TestTenantsPublishAgents: the administrator of a tenant publishes an agent that only the tenant
// sees, runs and schedules. For all others it does not exist, whatever they ask for.
func TestTenantsPublishAgents(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	user := headersOf("eve")
	f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf(mark), user...).wantProblem(t, "publication by a user", http.StatusForbidden, "forbidden")
	f.do(http.MethodPut, "/v1/agents/clerk", clerkOf(mark), alphaAdmin...).wantProblem(t, "publication for all by a tenant's administrator", http.StatusForbidden, "forbidden")
	f.do(http.MethodPut, "/v1/agents/clerk?scope=all", clerkOf(mark), alphaAdmin...).wantProblem(t, "an unknown scope", http.StatusBadRequest, "invalid_input")
	created := f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf(mark), alphaAdmin...).agent(t, http.StatusCreated)
	if created.Scope != agentroutes.ScopeTenant || created.Tenant != "alpha" || !stream.IsTenantRevision(created.Revision) {
		t.Errorf("published agent: got %+v, want one of alpha", created)
	}
	again := f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf(mark+" 2"), append([]string{"If-Match", `"` + created.Revision + `"`}, alphaAdmin...)...)
	current := again.agent(t, http.StatusOK)

	for _, path := range []string{"", "?scope=tenant"} {
		if shown := f.do(http.MethodGet, "/v1/agents/clerk"+path, "", user...).agent(t, http.StatusOK); shown.Revision != current.Revision || shown.Scope != agentroutes.ScopeTenant {
			t.Errorf("agent%s for a user of alpha: got %+v, want revision %s", path, shown, current.Revision)
		}
	}
	f.do(http.MethodGet, "/v1/agents/clerk?scope=platform", "", user...).wantProblem(t, "the platform's agent", http.StatusNotFound, "unknown_agent")
	revision := "/v1/agents/clerk/revisions/" + created.Revision
	if a := f.do(http.MethodGet, revision, "", alphaAdmin...); a.status != http.StatusOK || !strings.Contains(a.body, mark) {
		t.Errorf("definition for alpha's administrator: got %d %s", a.status, a.body)
	}
	if a := f.do(http.MethodGet, "/v1/agents/clerk/revisions/"+current.Revision+"/diff", "", alphaAdmin...); a.status != http.StatusOK || !strings.Contains(a.body, "clerk@"+created.Revision) {
		t.Errorf("diff for alpha's administrator: got %d %s", a.status, a.body)
	}
	if a := f.do(http.MethodGet, "/v1/agents/clerk/revisions", "", alphaAdmin...); !strings.Contains(a.body, `"scope":"tenant","by":"ada","byTenant":"alpha"`) {
		t.Errorf("revisions for alpha's administrator: got %s, want scope and author", a.body)
	}
	f.do(http.MethodGet, revision, "", user...).wantProblem(t, "definition for a user", http.StatusForbidden, "forbidden")

	run := func(header []string) answer {
		in := inputOf("r-clerk", "hello")
		in.ThreadID = "t-clerk"
		return f.do(http.MethodPost, "/v1/agents/clerk/runs", encodeInput(t, in), header...)
	}
	schedule := scheduleWith(t, map[string]any{"id": "s-clerk", "agent": "clerk"})
	for _, header := range [][]string{betaBoss, operator} {
		for _, path := range []string{"/v1/agents/clerk", "/v1/agents/clerk?scope=tenant", "/v1/agents/clerk?scope=platform", "/v1/agents/clerk/revisions", revision, revision + "?scope=tenant", revision + "/diff"} {
			a := f.do(http.MethodGet, path, "", header...)
			a.wantProblem(t, path+" for "+header[1], http.StatusNotFound, "unknown_agent")
			if strings.Contains(a.body, mark) {
				t.Errorf("%s for %s shows alpha's definition: %s", path, header[1], a.body)
			}
		}
		run(header).wantProblem(t, "run by "+header[1], http.StatusNotFound, "unknown_agent")
		f.do(http.MethodPost, "/v1/schedules", schedule, header...).wantProblem(t, "schedule of "+header[1], http.StatusNotFound, "unknown_agent")
		if a := f.do(http.MethodGet, "/v1/agents", "", header...); strings.Contains(a.body, "clerk") {
			t.Errorf("agents for %s = %s, want none of alpha", header[1], a.body)
		}
	}
	if a := f.do(http.MethodGet, "/v1/agents", "", user...); !strings.Contains(a.body, `"scope":"tenant","tenant":"alpha","revision":"`+current.Revision) || !strings.Contains(a.body, `"scope":"platform"`) {
		t.Errorf("agents for a user of alpha = %s, want those of alpha and of the platform", a.body)
	}
	run(user).mustStatus(t, "run by a user of alpha", http.StatusOK)
	if last := f.temporal.starts[len(f.temporal.starts)-1]; last.Agent != "clerk" || last.Revision != current.Revision {
		t.Errorf("started run: got %s %s, want clerk %s", last.Agent, last.Revision, current.Revision)
	}
	f.do(http.MethodPost, "/v1/schedules", schedule, user...).schedule(t, http.StatusCreated)
}

// TestNamesOfTenantsAndThePlatform: a tenant cannot publish a name of the platform. A tenant that had
// the name before the platform keeps its agent.
func TestNamesOfTenantsAndThePlatform(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	f.do(http.MethodPut, "/v1/agents/a?scope=tenant", "name: a\nmodel: test/m\n", alphaAdmin...).wantProblem(t, "a name of the platform", http.StatusConflict, "agent_name_taken")
	own := f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("alpha"), alphaAdmin...).agent(t, http.StatusCreated)
	other := f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("beta"), betaBoss...).agent(t, http.StatusCreated)
	shared := f.do(http.MethodPut, "/v1/agents/clerk", clerkOf("all"), operator...).agent(t, http.StatusCreated)
	if len(shared.Warnings) != 1 || !strings.Contains(shared.Warnings[0], "2 tenants") {
		t.Errorf("warnings of the platform's publication = %q, want one about 2 tenants", shared.Warnings)
	}
	for _, tt := range []struct {
		header []string
		path   string
		want   string
	}{
		{alphaAdmin, "", own.Revision}, {betaBoss, "", other.Revision}, {operator, "", shared.Revision},
		{alphaAdmin, "?scope=platform", shared.Revision}, {betaBoss, "?scope=tenant", other.Revision},
	} {
		if got := f.do(http.MethodGet, "/v1/agents/clerk"+tt.path, "", tt.header...).agent(t, http.StatusOK); got.Revision != tt.want {
			t.Errorf("agent%s for %s: got revision %s, want %s", tt.path, tt.header[1], got.Revision, tt.want)
		}
	}
	f.do(http.MethodGet, "/v1/agents/clerk/revisions/"+other.Revision, "", alphaAdmin...).wantProblem(t, "a revision of beta", http.StatusNotFound, "unknown_revision")
	f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("changed"), alphaAdmin...).agent(t, http.StatusOK)
}

// TestTenantsAgentsUseWhatPoliciesPermit: a definition of a tenant may name a tool, a model or a
// program of the workers only if a policy permits it. The operator's definitions may name all.
func TestTenantsAgentsUseWhatPoliciesPermit(t *testing.T) {
	t.Parallel()
	f := setup(t, func(c *api.Config) {
		policies, err := policy.New(policy.DefaultRoles, policy.File{Name: "own.cedar", Text: []byte(`
@id("crm") permit (principal in Tenant::"alpha", action == Action::"useTool", resource is Tool) when { resource.name like "mcp:crm/*" };
@id("host") permit (principal in Tenant::"alpha", action == Action::"useHost", resource == Host::"agents.alpha.example:8443");
@id("cheap") forbid (principal, action == Action::"useModel", resource is Model) when { resource.name like "dear/*" };`)})
		if err != nil {
			t.Fatal(err)
		}
		c.Auth, c.Policies = byHeader, policies
	})
	for name, tt := range map[string]struct{ rest, pointer, code, rule string }{
		"built-in tools, tools of the client": {`tools: [calculate, "client:*", "agent:a"]`, "", "", ""},
		"a permitted tool":                    {`tools: ["mcp:crm/find"]`, "", "", ""},
		"a tool with an effect":               {`tools: [calculate, refund]`, "/tools/1", "forbidden", policy.RuleNone},
		"a tool of another server":            {`tools: ["mcp:bank/pay"]`, "/tools/0", "forbidden", policy.RuleNone},
		"all tools":                           {`tools: ["*"]`, "/tools/0", "invalid_agent", ""},
		"a pattern of permitted tools":        {`tools: ["mcp:crm/*"]`, "/tools/0", "invalid_agent", ""},
		"a forbidden model":                   {`model: dear/m`, "/model", "forbidden", "cheap"},
		"a forbidden model for summaries":     {`context: {maxTokens: 2000, policy: summarize, model: dear/m}`, "/context/model", "forbidden", "cheap"},
		"a forbidden model for titles":        {`titleModel: dear/m`, "/titleModel", "forbidden", "cheap"},
		"a tool of an inline agent":           {`steps: [{name: s, agent: {instructions: Go., tools: [refund]}}]`, "/steps", "forbidden", policy.RuleNone},
		"a program":                           {`workflow: billing`, "/workflow", "forbidden", policy.RuleNone},
		"a remote agent":                      {`remote: {url: "https://agents.example.com/a"}`, "/remote/url", "forbidden", policy.RuleNone},
		"a remote agent on a permitted host":  {`remote: {url: "https://agents.alpha.example:8443/a"}`, "", "", ""},
	} {
		definition := "name: x\n" + tt.rest + "\n"
		if !strings.HasPrefix(tt.rest, "model") && !strings.HasPrefix(tt.rest, "remote") {
			definition += "model: test/m\n"
		}
		a := f.do(http.MethodPut, "/v1/agents/x?scope=tenant", definition, alphaAdmin...)
		if tt.code == "" {
			if a.status >= http.StatusBadRequest {
				t.Errorf("%s: got %d %s, want a publication", name, a.status, a.body)
			}
			continue
		}
		if a.problem.Code != tt.code || a.problem.Pointer != tt.pointer || a.problem.Rule != tt.rule {
			t.Errorf("%s: got %d %s, want %s at %s by the rule %q", name, a.status, a.body, tt.code, tt.pointer, tt.rule)
		}
	}
	f.do(http.MethodPut, "/v1/agents/x?scope=tenant", "name: x\nmodel: test/m\ntools: [\"mcp:crm/find\"]\n", betaBoss...).wantProblem(t, "alpha's tool in an agent of beta", http.StatusForbidden, "forbidden")
	f.do(http.MethodPut, "/v1/agents/y", "name: y\nmodel: dear/m\ntools: [\"*\"]\n", operator...).mustStatus(t, "an agent of the platform", http.StatusCreated)
}

// TestPublicationsOfTenantsAreAudited: a publication of a tenant's agent is in the audit log of the
// tenant, and one of the platform in that of the platform. Both name the scope.
func TestPublicationsOfTenantsAreAudited(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("alpha"), alphaAdmin...).mustStatus(t, "publication", http.StatusCreated)
	f.do(http.MethodPut, "/v1/agents/all", "name: all\nmodel: test/m\n", operator...).mustStatus(t, "publication for all", http.StatusCreated)
	for _, tt := range []struct {
		query  string
		header []string
		agent  string
		scope  string
	}{{"?action=agent.publish", alphaAdmin, "clerk", "tenant"}, {"?platform=true&action=agent.publish", operator, "all", "platform"}} {
		entries := f.entries(tt.query, tt.header)
		if len(entries) != 1 || entries[0].Agent != tt.agent || entries[0].Details["scope"] != tt.scope {
			t.Errorf("entries%s = %+v, want the publication of %s with the scope %s", tt.query, entries, tt.agent, tt.scope)
		}
	}
}

// TestQuotaOfTenantsAgents: the quota agents counts the agents of a tenant. Those of another tenant
// and of the platform do not count.
func TestQuotaOfTenantsAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, func(c *api.Config) {
		quotas, err := quota.Parse([]byte("tenants: {alpha: {agents: 1}}"))
		if err != nil {
			t.Fatal(err)
		}
		c.Auth, c.Quotas = byHeader, quotas
	})
	f.do(http.MethodPut, "/v1/agents/other", "name: other\nmodel: test/m\n", operator...).mustStatus(t, "an agent of the platform", http.StatusCreated)
	f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("one"), betaBoss...).mustStatus(t, "an agent of beta", http.StatusCreated)
	f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("one"), alphaAdmin...).mustStatus(t, "the first agent", http.StatusCreated)
	f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("two"), alphaAdmin...).mustStatus(t, "another revision", http.StatusOK)
	f.do(http.MethodPut, "/v1/agents/more?scope=tenant", "name: more\nmodel: test/m\n", alphaAdmin...).wantProblem(t, "a second agent", http.StatusTooManyRequests, "quota_exceeded")
	if a := f.do(http.MethodGet, "/v1/quotas", "", alphaAdmin...); !strings.Contains(a.body, `{"quota":"agents","used":1,"limit":1}`) {
		t.Errorf("quotas of alpha = %s, want one agent of one", a.body)
	}
}
