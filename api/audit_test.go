package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/auditroutes"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
)

// admin is an administrator of the tenant alpha, and of the platform.
var admin = headersOf("root", policy.DefaultRoles.TenantAdmin, policy.DefaultRoles.PlatformAdmin)

// withAudit gives the server an audit log that ends with the test.
func withAudit(t *testing.T) func(*api.Config) {
	t.Helper()
	return func(c *api.Config) {
		log, err := store.Open(t.Context(), c.Log)
		if err != nil {
			t.Fatal(err)
		}
		holds, err := store.OpenHolds(t.Context(), c.Log)
		if err != nil {
			t.Fatal(err)
		}
		w, err := store.NewWriter(log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		c.Audit = &auditroutes.Audit{Log: log, Writer: w, Holds: holds}
	}
}

// entries returns the entries that a query selects, and verifies them if there is no filter.
func (n *node) entries(query string, caller []string) []audit.Entry {
	n.t.Helper()
	a := n.do(http.MethodGet, "/v1/audit"+query, "", caller...)
	a.mustStatus(n.t, "audit"+query, http.StatusOK)
	var page struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		n.t.Fatal(err)
	}
	var list []audit.Entry
	var v audit.Verifier
	for _, raw := range page.Items {
		var e audit.Entry
		if err := json.Unmarshal(raw, &e); err != nil {
			n.t.Fatal(err)
		}
		if err := v.Verify(raw); err != nil && query == "" {
			n.t.Error(err)
		}
		list = append(list, e)
	}
	return list
}

// inWords describes entries, one line each.
func inWords(entries []audit.Entry) string {
	var lines []string
	for _, e := range entries {
		subject := "-"
		if e.Actor != nil {
			subject = e.Actor.Subject
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %d %s %s", subject, e.Action, e.Outcome, e.Status, e.Thread, e.Details["decision"])))
	}
	return strings.Join(lines, "\n")
}

// TestAuditTellsWhoDidWhat: actions and denials have entries with their actor and outcome, over HTTP
// and WebSocket; reads and refusals without effect have none.
func TestAuditTellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	eve := headersOf("eve")
	f.do(http.MethodGet, "/v1/threads/t", "", alpha...).mustStatus(t, "read", http.StatusOK)
	f.do(http.MethodGet, "/v1/threads/t", "", eve...).mustStatus(t, "read of another user", http.StatusForbidden)
	f.do(http.MethodPut, "/v1/threads/t/shares", `{"shares":[{"subject":"bob","access":"read"}]}`, alpha...).mustStatus(t, "share", http.StatusOK)
	f.do(http.MethodPut, "/v1/threads/t/shares", `{"shares":[{}]}`, alpha...).mustStatus(t, "invalid share", http.StatusBadRequest)
	f.do(http.MethodDelete, "/v1/threads/unknown", "", alpha...).mustStatus(t, "unknown thread", http.StatusNotFound)
	c := f.dial(eve...)
	c.send(map[string]any{"type": "cancel", "id": "1", "threadId": "t", "runId": "r1"})
	c.want("error", "1")
	c.send(map[string]any{"type": "subscribe", "id": "2", "threadId": "none", "follow": true})
	c.want("ack", "2")
	f.do(http.MethodDelete, "/v1/threads/t", "", alpha...).mustStatus(t, "deletion", http.StatusNoContent)
	const want = `ann run.start accepted 200 t
ann schedule.create accepted 201
eve read denied 403 t
ann thread.share accepted 200 t
eve run.cancel denied 403 t
ann thread.delete accepted 204 t`
	if got := inWords(f.entries("", admin)); got != want {
		t.Errorf("entries:\n%s\nwant:\n%s", got, want)
	}
	for query, want := range map[string]int{
		"?outcome=denied": 2, "?subject=eve": 2, "?action=thread.delete": 1, "?thread=t": 5, "?limit=2": 2, "?since=2999-01-01T00:00:00Z": 0, "?until=2020-01-01T00:00:00Z": 0,
	} {
		if got := f.entries(query, admin); len(got) != want {
			t.Errorf("%s: got %d entries, want %d", query, len(got), want)
		}
	}
	if got := f.entries("?cursor=4&limit=1", admin); len(got) != 1 || got[0].Number != 5 {
		t.Errorf("the page after entry 4 = %+v, want entry 5", got)
	}
	if got := f.entries("?order=newest&cursor=7&limit=2", admin); len(got) != 2 || got[0].Number != 6 || got[1].Number != 5 {
		t.Errorf("the newest two before entry 7 = %+v, want the entries 6 and 5", got)
	}
	if got := f.entries("?order=newest&cursor=2", admin); len(got) != 1 || got[0].Number != 1 {
		t.Errorf("the page before entry 2 = %+v, want entry 1", got)
	}
	for _, query := range []string{"?cursor=x", "?order=up", "?order=newest&cursor=x", "?since=yesterday", "?outcome=maybe", "?limit=0", "?platform=maybe", "?unknown=1"} {
		f.do(http.MethodGet, "/v1/audit"+query, "", admin...).mustStatus(t, query, http.StatusBadRequest)
	}
}

// TestAuditIsForAdministrators: other callers, and administrators of other tenants, read nothing.
func TestAuditIsForAdministrators(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	f.do(http.MethodGet, "/v1/audit", "", alpha...).mustStatus(t, "a user", http.StatusForbidden)
	f.do(http.MethodPut, "/v1/hold", `{}`, alpha...).mustStatus(t, "hold by a user", http.StatusForbidden)
	betaAdmin := []string{"X-Tenant", "beta", "X-User", "bea", "X-Roles", policy.DefaultRoles.TenantAdmin}
	if got := inWords(f.entries("", betaAdmin)); got != "" {
		t.Errorf("beta's entries = %s, want none of alpha", got)
	}
	f.do(http.MethodGet, "/v1/audit?platform=true", "", betaAdmin...).mustStatus(t, "the platform's entries, by an administrator of a tenant", http.StatusForbidden)
	f.do(http.MethodPut, "/v1/agents/new", `{"name":"new","model":"test/m"}`, append([]string{"Content-Type", "application/json"}, admin...)...).mustStatus(t, "publication", http.StatusCreated)
	if got, want := inWords(f.entries("?platform=true", admin)), "root agent.publish accepted 201"; got != want {
		t.Errorf("the platform's entries = %s, want %s", got, want)
	}
}

// TestRejectedCredentialsAreAudited: the platform's entries have requests whose credentials or origin
// are not accepted, up to a rate.
func TestRejectedCredentialsAreAudited(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	for range 300 {
		f.do(http.MethodPost, "/v1/threads/t/pause", "", append([]string{"Origin", "https://evil.example"}, alpha...)...).mustStatus(t, "foreign origin", http.StatusForbidden)
	}
	got := f.entries("?platform=true&limit=500", admin)
	if len(got) < 100 || len(got) > 200 {
		t.Fatalf("got %d entries for 300 requests, want about 100", len(got))
	}
	if e := got[0]; e.Action != audit.Authenticate || e.Outcome != audit.Denied || e.Source.Address == "" || !strings.Contains(e.Details["reason"], "evil.example") {
		t.Errorf("entry = %+v, want a denial with the origin", e)
	}
}

// TestHoldForbidsDeletion: a thread with a legal hold, or of a tenant with one, stays.
func TestHoldForbidsDeletion(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	for _, path := range []string{"/v1/hold", "/v1/threads/t/hold"} {
		f.do(http.MethodGet, path, "", admin...).mustStatus(t, "no hold", http.StatusNotFound)
		a := f.do(http.MethodPut, path, `{"reason":"case 7"}`, admin...)
		a.mustStatus(t, path, http.StatusOK)
		if !strings.Contains(a.body, `"by":"root"`) {
			t.Errorf("%s: got %s, want its author", path, a.body)
		}
		f.do(http.MethodGet, path, "", admin...).mustStatus(t, "the hold", http.StatusOK)
		if a := f.do(http.MethodDelete, "/v1/threads/t", "", alpha...); a.status != http.StatusConflict || a.problem.Code != "legal_hold" {
			t.Errorf("%s: deletion = %d %s, want 409 legal_hold", path, a.status, a.body)
		}
		f.do(http.MethodDelete, path, "", admin...).mustStatus(t, "release", http.StatusNoContent)
	}
	if got := f.entries("?action=thread.delete&outcome=denied", admin); len(got) != 2 || got[0].Code != "legal_hold" {
		t.Errorf("denied deletions = %+v, want those that the holds forbid", got)
	}
	for _, body := range []string{`{"reason":"` + strings.Repeat("x", 1001) + `"}`, `{"reason":" "}`, `{}`, ``} {
		for _, path := range []string{"/v1/hold", "/v1/threads/t/hold"} {
			a := f.do(http.MethodPut, path, body, admin...)
			a.mustStatus(t, fmt.Sprintf("%s %.20s: status", path, body), http.StatusBadRequest)
			wantEqual(t, fmt.Sprintf("%s %.20s: problem pointer", path, body), a.problem.Pointer, "/reason")
		}
	}
	f.do(http.MethodDelete, "/v1/threads/t", "", alpha...).mustStatus(t, "deletion", http.StatusNoContent)
}

// TestActionWithoutAuditIsNotAcknowledged: if the entry cannot be written, the client gets a 503, and
// the repeated request has its entry.
func TestActionWithoutAuditIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	var entries *store.Writer
	n := setup(t, func(c *api.Config) {
		c.Auth = byHeader
		withAudit(t)(c)
		entries = c.Audit.Writer
	})
	n.temporal.start = func(in runs.Input) error {
		p := n.begin(in, "e1")
		_, _, err := n.log.Seal(n.ctx(), p, &agui.RunFinished{ThreadID: "t", RunID: p.Run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeSuccess}})
		return err
	}
	entries.Close()
	a := n.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", "hello")), headersOf("ann")...)
	if a.status != http.StatusServiceUnavailable || a.problem.Code != "audit_unavailable" || a.header.Get("Retry-After") == "" {
		t.Errorf("run without an audit log = %d %s, want 503 audit_unavailable", a.status, a.body)
	}
	c := n.dial(headersOf("ann")...)
	c.send(map[string]any{"type": "run", "id": "1", "agent": "a", "input": inputOf("r2", "hello")})
	if got := c.next(); got.Type != "error" || got.Code != "audit_unavailable" {
		t.Errorf("frame without an audit log = %+v, want audit_unavailable", got)
	}
	n.do(http.MethodGet, "/v1/threads/t", "", headersOf("ann")...).mustStatus(t, "read", http.StatusOK)
	n.do(http.MethodGet, "/v1/threads/t", "", headersOf("eve")...).mustStatus(t, "denied read", http.StatusForbidden)
}

// TestEveryChangeHasAnAuditAction: each route that may change something has an action of its own.
func TestEveryChangeHasAnAuditAction(t *testing.T) {
	t.Parallel()
	n := setup(t, withAudit(t), func(c *api.Config) { c.Inbox = openInbox(t, c.Log) })
	for _, r := range n.server.Routes() {
		if action := api.AuditAction(r.Method, r.Path); action == audit.Change {
			t.Errorf("%s %s has no action", r.Method, r.Path)
		}
	}
}
