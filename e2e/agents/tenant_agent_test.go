package agents

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// tenantScripts are the models of the agents of TestTenantsRunTheirAgents: chief asks the subagent
// helper and repeats its answer, or hands the thread over to it.
const tenantScripts = `kind: script
name: chief
turns:
  - when: Hand it over
    steps:
      - calls: [{tool: transfer_to_helper}]
  - steps:
      - calls: [{tool: helper, arguments: {task: "Who are you?"}}]
      - say: "I heard: {helper}"
---
kind: script
name: tenant
turns: [{steps: [{say: helper of the tenant}]}]
---
kind: script
name: platform
turns: [{steps: [{say: helper of the platform}]}]
`

// TestTenantsRunTheirAgents: a tenant's agent works with a subagent, a step and a handoff of the same
// tenant. An agent of the platform uses the platform's agent of the same name, also for that tenant,
// and a thread that it has handed over stays with that one.
func TestTenantsRunTheirAgents(t *testing.T) {
	t.Parallel()
	provider := kit.StartIssuer(t)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	if err := os.WriteFile(filepath.Join(p.Agents, "scripts.yaml"), []byte(tenantScripts), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = []string{
		"PERDURE_AUTH=oidc", "PERDURE_OIDC_ISSUER=" + provider.URL, "PERDURE_OIDC_AUDIENCE=perdure",
		"PERDURE_OIDC_TENANT_CLAIM=org", "PERDURE_OIDC_ROLES_CLAIM=roles",
	}
	p.InspectAtEnd(t)
	p.Start(t)
	user := func(name, tenant string, roles ...string) string {
		return provider.Token(t, kit.Marked(name), time.Hour, map[string]any{"org": tenant, "roles": roles})
	}
	ann, ada, gil, ops := user("ann", "acme"), user("ada", "acme", "perdure-tenant-admin"), user("gil", "globex"), user("ops", "operations", "perdure-platform-admin")
	publish := func(token, name, scope string, members map[string]any) {
		t.Helper()
		members["name"] = name
		if resp := p.RequestAs(t, token, http.MethodPut, "/v1/agents/"+name+"?scope="+scope, members); resp.StatusCode != http.StatusCreated {
			t.Fatalf("publication of %s for the %s: got %s, want %d", name, scope, resp.Status, http.StatusCreated)
		}
	}
	// The tenant has the name helper first: otherwise its publication is refused.
	publish(ada, "helper", "tenant", map[string]any{"model": "scripted/tenant"})
	for scope, token := range map[string]string{"tenant": ada, "platform": ops} {
		publish(token, scope+"-chief", scope, map[string]any{"model": "scripted/chief", "tools": []string{"agent:helper", "handoff:helper"}})
		publish(token, scope+"-steps", scope, map[string]any{"steps": []any{map[string]any{"name": "ask", "agent": "helper"}}})
	}
	publish(ops, "helper", "platform", map[string]any{"model": "scripted/platform"})

	say := func(token string, in kit.Input, agent string) string {
		t.Helper()
		var text strings.Builder
		for _, e := range kit.WantEvents(t, p.RequestAs(t, token, http.MethodPost, "/v1/agents/"+agent+"/runs", in)) {
			text.WriteString(e.Member("delta"))
			if e.Type == "RUN_ERROR" {
				t.Errorf("run of %s: got %s, want success", agent, e.Data)
			}
		}
		return text.String()
	}
	for _, tt := range []struct{ user, token, agent, want string }{
		{"ann", ann, "tenant-chief", "I heard: helper of the tenant"},
		{"ann", ann, "tenant-steps", "helper of the tenant"},
		{"ann", ann, "platform-chief", "I heard: helper of the platform"},
		{"ann", ann, "platform-steps", "helper of the platform"},
		{"gil", gil, "platform-chief", "I heard: helper of the platform"},
	} {
		in := kit.NewInput(kit.Marked("Who is it?"))
		p.Threads.Add(in.ThreadID)
		if got := say(tt.token, in, tt.agent); !strings.Contains(got, tt.want) {
			t.Errorf("%s of %s said %q, want %q", tt.agent, tt.user, got, tt.want)
		}
	}
	for _, scope := range []string{"tenant", "platform"} {
		first := kit.NewInput(kit.Marked("Hand it over."))
		p.Threads.Add(first.ThreadID)
		next := kit.NewInput(kit.Marked("And now?"))
		next.ThreadID, next.RunID = first.ThreadID, "run-2"
		for _, in := range []kit.Input{first, next} {
			if got := say(ann, in, scope+"-chief"); !strings.Contains(got, "helper of the "+scope) {
				t.Errorf("after a handoff of %s-chief: got %q, want the helper of the %s", scope, got, scope)
			}
		}
	}
	kit.WantProblem(t, p.RequestAs(t, gil, http.MethodPost, "/v1/agents/tenant-chief/runs", kit.NewInput("Hello.")), 404, "unknown_agent")
}
