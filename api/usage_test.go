package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/usage"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// withUsage gives the node a ledger with a run of today for each tenant, and a run of another agent
// of acme, which ended in January 2026.
func withUsage(t *testing.T) func(*api.Config) {
	return func(c *api.Config) {
		ledger, err := usage.Open(t.Context(), c.Log)
		if err != nil {
			t.Fatal(err)
		}
		c.Usage = ledger
		input, output, cost := int64(10), int64(2), int64(1_500_000)
		used := []runs.Usage{{Provider: "openai", Model: "gpt", Input: &input, Output: &output, Cost: &cost}}
		for _, r := range []usage.Run{
			{Run: stream.Run{Thread: stream.Thread{Tenant: "acme", ID: "t"}, ID: "r1"}, Agent: "a", Ended: time.Now(), Duration: time.Second, Usage: used, Currency: "EUR"},
			{Run: stream.Run{Thread: stream.Thread{Tenant: "acme", ID: "t"}, ID: "r2"}, Agent: "b", Ended: time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC), Outcome: runs.OutcomeError},
			{Run: stream.Run{Thread: stream.Thread{Tenant: "globex", ID: "t"}, ID: "r1"}, Agent: "a", Ended: time.Now(), Usage: used, Currency: "EUR"},
		} {
			if err := ledger.Count(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestUsage: administrators of a tenant read the usage of their tenant, and administrators of the
// platform that of every tenant, which the answer says. Other callers read none.
func TestUsage(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, withUsage(t))
	member := []string{"X-Tenant", "acme", "X-Subject", "ann"}
	tenantAdmin := append(member, "X-Role", policy.DefaultRoles.TenantAdmin)
	platformAdmin := []string{"X-Tenant", "ops", "X-Subject", "root", "X-Role", policy.DefaultRoles.PlatformAdmin}
	const used = `"inputTokens":10,"outputTokens":2,"totalTokens":12,"cost":{"amount":1.5,"currency":"EUR"}`
	const empty = `{"items":[]}`
	today := time.Now().UTC().Format(time.DateOnly)
	for _, test := range []struct {
		query  string
		caller []string
		want   string // "" = 403
	}{
		{"", tenantAdmin, `{"items":[{"day":"` + today + `","runs":1,"failed":0,"cancelled":0,"interrupted":0,` + used + `,"seconds":1}]}`},
		{"?groupBy=agent,model", tenantAdmin, `{"items":[{"agent":"a","model":"openai/gpt","runs":1,"failed":0,"cancelled":0,"interrupted":0,` + used + `,"seconds":1}]}`},
		{"?agent=b", tenantAdmin, empty},
		{"?from=2026-01-31&to=2026-01-31&groupBy=agent", tenantAdmin, `{"items":[{"agent":"b","runs":1,"failed":1,"cancelled":0,"interrupted":0,"inputTokens":0,"outputTokens":0,"totalTokens":0,"seconds":0}]}`},
		{"?to=2026-01-30", tenantAdmin, empty},
		{"?from=2026-02-01&to=2026-02-01", tenantAdmin, empty},
		{"?tenant=acme&groupBy=tenant", tenantAdmin, `{"items":[{"tenant":"acme","runs":1,"failed":0,"cancelled":0,"interrupted":0,` + used + `,"seconds":1}]}`},
		{"?tenant=globex", tenantAdmin, ""},
		{"?groupBy=tenant", tenantAdmin, ""},
		{"", member, ""},
		{"", platformAdmin, `{"items":[],"allTenants":true}`},
		{"?tenant=globex&groupBy=agent", platformAdmin, `{"items":[{"agent":"a","runs":1,"failed":0,"cancelled":0,"interrupted":0,` + used + `,"seconds":0}],"allTenants":true}`},
		{"?groupBy=tenant", platformAdmin, `{"items":[{"tenant":"acme","runs":1,"failed":0,"cancelled":0,"interrupted":0,` + used + `,"seconds":1},{"tenant":"globex","runs":1,"failed":0,"cancelled":0,"interrupted":0,` + used + `,"seconds":0}],"allTenants":true}`},
	} {
		a := node.do(http.MethodGet, "/v1/usage"+test.query, "", test.caller...)
		name := test.query + " by " + test.caller[3]
		if test.want == "" {
			a.wantStatus(t, name, http.StatusForbidden)
			continue
		}
		a.wantStatus(t, name, http.StatusOK)
		wantEqual(t, name, strings.TrimSpace(a.body), test.want)
	}
	for query, parameter := range map[string]string{
		"?groupBy=owner":                   "groupBy",
		"?groupBy=":                        "groupBy",
		"?groupBy=agent,,day":              "groupBy",
		"?from=yesterday":                  "from",
		"?to=2026-02-30":                   "to",
		"?from=2026-02-01&to=2026-01-31":   "from",
		"?from=2026-01-01&to=2027-02-05":   "from",
		"?tenant=":                         "tenant",
		"?from=2026-01-01&from=2026-01-02": "from",
		"?from=2026-01-01T00:00:00Z":       "from",
		"?days=7":                          "days",
	} {
		a := node.do(http.MethodGet, "/v1/usage"+query, "", platformAdmin...)
		a.wantStatus(t, query, http.StatusBadRequest)
		wantEqual(t, "parameter of "+query, a.problem.Parameter, parameter)
	}
}

// TestUsageWithoutAuthentication: without authentication every caller is an administrator.
func TestUsageWithoutAuthentication(t *testing.T) {
	t.Parallel()
	node := setup(t, withUsage(t))
	a := node.do(http.MethodGet, "/v1/usage?groupBy=tenant", "")
	a.wantStatus(t, "without authentication", http.StatusOK)
	if !strings.Contains(a.body, `"tenant":"globex"`) {
		t.Errorf("answer = %s, want the usage of all tenants", a.body)
	}
}

// TestRunOfDeadWorkflowIsCounted: the API ends a run whose workflow is dead, with the usage of the
// model calls that have ended, and counts it once. The index of threads has its cost.
func TestRunOfDeadWorkflowIsCounted(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), func(c *api.Config) {
		ledger, err := usage.Open(t.Context(), c.Log)
		if err != nil {
			t.Fatal(err)
		}
		c.Usage = ledger
	})
	node.temporal.status = terminated
	p := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: "default", ID: "dead"}, ID: "r"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	var err error
	if p.After, err = node.snapshots.OpenRun(node.ctx(), p, stream.Opening{Agent: "a", Continues: "r0"}); err != nil {
		t.Fatal(err)
	}
	call, _, err := node.log.Begin(node.ctx(), p)
	if err != nil {
		t.Fatal(err)
	}
	answer := json.RawMessage(`{"outcome":"success","usage":{"provider":"openai","model":"gpt","input":10,"output":2,"cost":1500000,"calls":1}}`)
	if _, err := call.Finish(node.ctx(), &stream.Result{Answer: answer}); err != nil {
		t.Fatal(err)
	}
	node.do(http.MethodGet, "/v1/threads/dead", "").mustStatus(t, "the thread", http.StatusOK)

	events := node.do(http.MethodGet, "/v1/threads/dead/runs/r/events", "").body
	for _, want := range []string{`"code":"workflow_terminated"`, `"inputTokens":10`, `"perdure.cost":{"amount":1.5}`} {
		if !strings.Contains(events, want) {
			t.Errorf("events of the run = %s, want %s", events, want)
		}
	}
	for range 2 {
		a := node.do(http.MethodGet, "/v1/usage?groupBy=agent,model", "")
		want := `{"items":[{"agent":"a","model":"openai/gpt","runs":1,"failed":1,"cancelled":0,"interrupted":0,"inputTokens":10,"outputTokens":2,"totalTokens":12,"cost":{"amount":1.5},"seconds":`
		if !strings.HasPrefix(a.body, want) {
			t.Errorf("report = %s, want %s", a.body, want)
		}
		node.do(http.MethodGet, "/v1/threads/dead", "").mustStatus(t, "the thread", http.StatusOK)
	}
	node.awaitList("?status=failed&minCost=1.5", "dead failed")
}
