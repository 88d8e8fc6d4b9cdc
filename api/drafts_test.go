package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/auth/policy"
)

var yamlBody = []string{"Content-Type", "application/yaml"}

// draft stores a draft of the agent a, and returns its revision.
func (n *node) draft(definition string, header ...string) string {
	n.t.Helper()
	a := n.do(http.MethodPost, "/v1/agents/a/drafts", definition, slices.Concat(yamlBody, header)...)
	return a.agent(n.t, http.StatusCreated).Revision
}

// TestRunsNameRevisions: a run may name a draft or an earlier revision, over HTTP and a WebSocket.
// Without a name it has the current one, which a draft never is.
func TestRunsNameRevisions(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.temporal.closed = func(string) {}
	first := node.publishRevision(brief)
	current := node.publishRevision(brief + "tools: [calculate]\n")
	draft := node.draft(brief + "tools: [current_time]\n")
	if again := node.draft(brief + "tools: [current_time]\n"); again != draft {
		t.Errorf("the same draft again: %s, want %s", again, draft)
	}
	for i, tt := range []struct{ query, want string }{{"", current}, {"?revision=" + draft, draft}, {"?revision=" + first, first}, {"?revision=" + current, current}} {
		in := inputOf("r"+string(rune('1'+i)), "hello "+tt.query)
		node.do(http.MethodPost, "/v1/agents/a/runs"+tt.query, encodeInput(t, in)).mustStatus(t, "run "+tt.query, http.StatusOK)
		if got := node.temporal.starts[i].Revision; got != tt.want {
			t.Errorf("revision of the run %q: got %s, want %s", tt.query, got, tt.want)
		}
	}
	c := node.dial()
	c.send(map[string]any{"type": "run", "id": "1", "agent": "a", "revision": draft, "input": inputOf("r9", "hello over a socket")})
	if got := c.next(); got.Type != "ack" || node.temporal.starts[4].Revision != draft {
		t.Errorf("run over a WebSocket: got %+v with the revision %s, want the draft", got, node.temporal.starts[4].Revision)
	}
	for _, revision := range []string{strings.Repeat("0", 64), "x.*>", "tenant-"} {
		node.do(http.MethodPost, "/v1/agents/a/runs?revision="+revision, encodeInput(t, inputOf("none", "hello"))).wantProblem(t, revision, http.StatusNotFound, "unknown_revision")
	}
	list := node.do(http.MethodGet, "/v1/agents/a/revisions", "")
	if strings.Contains(list.body, draft) {
		t.Errorf("revisions: got %s, want no draft", list.body)
	}
	shown := node.do(http.MethodGet, "/v1/agents/a/revisions/"+draft+"/diff", "")
	if !strings.Contains(shown.body, "+  - current_time") || !strings.Contains(shown.body, "-  - calculate") {
		t.Errorf("diff of the draft: got %s, want it compared with the current revision", shown.body)
	}
}

// TestDraftOfNewAgent: an agent that was never published runs by the revision of its draft only.
func TestDraftOfNewAgent(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	a := node.do(http.MethodPost, "/v1/agents/fresh/drafts", "name: fresh\nmodel: test/m\n", yamlBody...).agent(t, http.StatusCreated)
	node.do(http.MethodPost, "/v1/agents/fresh/runs?revision="+a.Revision, encodeInput(t, inputOf("r1", "hello"))).mustStatus(t, "run", http.StatusOK)
	node.do(http.MethodPost, "/v1/agents/fresh/runs", encodeInput(t, inputOf("r2", "hello"))).wantProblem(t, "run without a revision", http.StatusNotFound, "unknown_agent")
	node.do(http.MethodPost, "/v1/agents/fresh/drafts", "name: other\nmodel: test/m\n", yamlBody...).wantProblem(t, "another name", http.StatusBadRequest, "invalid_agent")
}

// TestDraftsNeedPermission: only those who may publish an agent store its drafts, and run another
// revision than the current one. The audit log has both.
func TestDraftsNeedPermission(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	f.completeRuns()
	put := func(header []string, instructions string) answer {
		return f.do(http.MethodPost, "/v1/agents/clerk/drafts?scope=tenant", clerkOf(instructions), slices.Concat(yamlBody, header)...)
	}
	eve := headersOf("eve")
	put(eve, "x").wantProblem(t, "a draft of a user", http.StatusForbidden, "forbidden")
	first := f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant", clerkOf("approve all"), alphaAdmin...).agent(t, http.StatusCreated).Revision
	f.do(http.MethodPut, "/v1/agents/clerk?scope=tenant&note=Shorter", clerkOf("y"), alphaAdmin...).agent(t, http.StatusOK)
	draft := put(alphaAdmin, "z").agent(t, http.StatusCreated).Revision
	run := func(revision, id string, header []string) answer {
		in := inputOf(id, "hello")
		in.ThreadID = "thread of " + id
		return f.do(http.MethodPost, "/v1/agents/clerk/runs?revision="+revision, encodeInput(t, in), header...)
	}
	for what, revision := range map[string]string{"a draft": draft, "an earlier revision": first} {
		run(revision, "eve", eve).wantProblem(t, what+" by a user", http.StatusForbidden, "forbidden")
		run(revision, "ada"+revision, alphaAdmin).wantStatus(t, what+" by an administrator", http.StatusOK)
		if a := run(revision, "gus", betaBoss); a.status == http.StatusOK {
			t.Errorf("%s in another tenant: got %d, want a refusal", what, a.status)
		}
	}
	if list := f.do(http.MethodGet, "/v1/agents/clerk/revisions", "", alphaAdmin...); !strings.Contains(list.body, `"note":"Shorter"`) {
		t.Errorf("revisions: got %s, want the note", list.body)
	}
	entries := f.do(http.MethodGet, "/v1/audit?limit=100", "", alphaAdmin...)
	for _, want := range []string{`"action":"agent.draft","outcome":"accepted"`, `"revision":"` + draft + `"`} {
		if !strings.Contains(entries.body, want) {
			t.Errorf("audit log: got %s, want %s", entries.body, want)
		}
	}
}

// TestDraftsCountForQuota: drafts count as definitions.
func TestDraftsCountForQuota(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, quotasOf(t, "tenants: {acme: {definitionBytes: 300}}"))
	admin := []string{"X-Tenant", "acme", "X-Subject", "ada", "X-Role", policy.DefaultRoles.TenantAdmin}
	put := func(instructions string) answer {
		return node.do(http.MethodPost, "/v1/agents/clerk/drafts?scope=tenant", clerkOf(instructions), slices.Concat(yamlBody, admin)...)
	}
	put("one").mustStatus(t, "the first draft", http.StatusCreated)
	refused := put(strings.Repeat("two ", 60))
	refused.wantProblem(t, "a draft beyond the quota", http.StatusTooManyRequests, "quota_exceeded")
	put("one").wantStatus(t, "the first draft again", http.StatusCreated)
}
