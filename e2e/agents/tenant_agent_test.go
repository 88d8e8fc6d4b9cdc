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
name: lure
turns:
  - steps:
      - calls: [{tool: payer, arguments: {task: "Pay."}}]
      - say: done
---
kind: script
name: outer
turns:
  - steps:
      - calls: [{tool: lure, arguments: {task: "Pay."}}]
      - say: done
---
kind: script
name: giver
turns: [{steps: [{calls: [{tool: transfer_to_lure}]}, {say: done}]}]
---
kind: script
name: payer
turns:
  - steps:
      - calls: [{tool: calculate, arguments: {expression: "1+1"}}]
      - say: paid
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
// and a thread that it has handed over stays with that one. The approval rules of an agent of the
// platform do not trust what the author of a tenant's agent has written.
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

	// An agent of the platform pays, and the author of an agent of the tenant lets it.
	ada = user("ada", "acme", "perdure-tenant-admin", "finance")
	fay := user("fay", "acme", "finance")
	payer := func(rule map[string]any) map[string]any {
		rule["tools"], rule["approvers"] = []string{"calculate"}, []string{"role:finance"}
		return map[string]any{"model": "scripted/payer", "tools": []string{"calculate"}, "approvals": []any{rule}}
	}
	publish(ops, "payer", "platform", payer(map[string]any{"notByRequester": true, "when": `has(state.risk) && state.risk > 0`}))
	publish(ada, "own-payer", "tenant", payer(map[string]any{"notByRequester": true}))
	publish(ada, "lure", "tenant", map[string]any{"model": "scripted/lure", "tools": []string{"agent:payer"}})
	zoe := user("zoe", "acme", "perdure-tenant-admin")
	publish(zoe, "outer", "tenant", map[string]any{"model": "scripted/outer", "tools": []string{"agent:lure"}})
	publish(zoe, "outer-steps", "tenant", map[string]any{"steps": []any{map[string]any{"name": "ask", "agent": "lure"}}})
	publish(zoe, "giver", "tenant", map[string]any{"model": "scripted/giver", "tools": []string{"handoff:lure"}})
	ask := func(agent string, in kit.Input) (decide func(token string) *http.Response) {
		t.Helper()
		p.Threads.Add(in.ThreadID)
		events := kit.WantEvents(t, p.RequestAs(t, ann, http.MethodPost, "/v1/agents/"+agent+"/runs", in)) //nolint:bodyclose // WantEvents closes it
		if last := events[len(events)-1]; kit.Outcome(last) != "interrupt" {
			t.Fatalf("run of %s: got %s, want an interrupt", agent, last.Data)
		}
		id := kit.InterruptsOf(t, events)[0].ID
		return func(token string) *http.Response {
			return p.RequestAs(t, token, http.MethodPost, "/v1/threads/"+in.ThreadID+"/approvals/"+id, map[string]any{"decision": "approve"})
		}
	}
	refuseAuthor := func(agent string, in kit.Input) {
		t.Helper()
		decide := ask(agent, in)
		kit.WantProblem(t, decide(ada), http.StatusForbidden, "not_by_requester")
		if resp := decide(fay); resp.StatusCode != http.StatusOK {
			t.Errorf("decision of an approver who has published nothing, about %s: got %s, want %d", agent, resp.Status, http.StatusOK)
		}
	}
	for _, agent := range []string{"lure", "outer", "outer-steps", "giver"} {
		refuseAuthor(agent, kit.NewInput(kit.Marked("Pay.")))
	}
	own := kit.NewInput(kit.Marked("Pay."))
	if resp := ask("own-payer", own)(ada); resp.StatusCode != http.StatusOK {
		t.Errorf("decision of the author under a rule of the tenant: got %s, want %d", resp.Status, http.StatusOK)
	}
	// A fork of the thread has what the tenant's agent has written.
	fork := kit.NewInput(kit.Marked("Pay."))
	if resp := p.RequestAs(t, ann, http.MethodPost, "/v1/threads/"+own.ThreadID+"/runs/run-1/fork", map[string]string{"threadId": fork.ThreadID}); resp.StatusCode != http.StatusCreated {
		t.Fatalf("fork: got %s, want %d", resp.Status, http.StatusCreated)
	}
	refuseAuthor("payer", fork)
}
