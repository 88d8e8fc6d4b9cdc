package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/control/schedules"
)

// TestUnknownQueryParametersAreRefused: a misspelled filter must not list everything, and a
// misspelled cursor must not start again.
func TestUnknownQueryParametersAreRefused(t *testing.T) {
	t.Parallel()
	n := setup(t, withThreadList(t), func(c *api.Config) {
		c.Inbox, c.Metrics, c.Schedules = openInbox(t, c.Log), http.NotFoundHandler(), &schedules.Store{}
	})
	for _, r := range n.routes() {
		if strings.HasPrefix(r.Path, "/v1/links/") {
			continue // mail programs add parameters to links
		}
		a := n.do(r.Method, r.Path+"?zzz=1&statsu=idle", bodyOf(r.Handler))
		if a.status != http.StatusBadRequest || a.problem.Code != "invalid_input" || !strings.Contains(a.problem.Detail, `unknown query parameters "statsu", "zzz": this route has `) {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, a.status, a.body)
		}
		for name, schema := range described().queryOf(r.Method, r.Path) {
			if !strings.Contains(a.problem.Detail, name) {
				t.Errorf("%s %s does not list %s: %s", r.Method, r.Path, name, a.problem.Detail)
			}
			b := n.do(r.Method, r.Path+"?"+name+"=x&"+name+"=x", bodyOf(r.Handler))
			if b.status != http.StatusBadRequest || !strings.Contains(b.problem.Detail, name+" may be given only once") {
				t.Errorf("%s %s: %s (%v) twice: got %d %s", r.Method, r.Path, name, schema, b.status, b.body)
			}
		}
	}
}

// queryOf returns the described query parameters of a route, with their schemas.
func (c *apiDescription) queryOf(method, path string) map[string]any {
	found := map[string]any{}
	op, pointer := c.operation(method, path)
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		if p, _ := c.at(p, pointer); p.(map[string]any)["in"] == "query" {
			found[p.(map[string]any)["name"].(string)] = p.(map[string]any)["schema"]
		}
	}
	return found
}

// TestEventLimitIsValidated: the limit applies to pages of events. A stream refuses an invalid
// limit too, so that the client notices.
func TestEventLimitIsValidated(t *testing.T) {
	t.Parallel()
	n := setup(t)
	n.completeRuns()
	n.post(inputOf("r1", "hello"))
	for _, path := range []string{"/v1/threads/t/events?follow=false&limit=0", "/v1/threads/t/runs/r1/events?limit=x"} {
		for _, accept := range []string{"text/event-stream", "application/json"} {
			if a := n.do(http.MethodGet, path, "", "Accept", accept); a.status != http.StatusBadRequest || !strings.Contains(a.problem.Detail, "limit") {
				t.Errorf("%s as %s: %d %.200s", path, accept, a.status, a.body)
			}
		}
	}
}

// TestProblemNamesInvalidCursor: a request may have more than one cursor. The problem names the invalid
// one.
func TestProblemNamesInvalidCursor(t *testing.T) {
	t.Parallel()
	n := setup(t)
	n.completeRuns()
	cursor := cursors(n.post(inputOf("r1", "hello")).body)[0]
	for _, path := range []string{
		"/v1/threads/t/events?after=wrong&waitFor=" + cursor, "/v1/threads/t/runs/r1/events?waitFor=wrong&after=" + cursor,
		"/v1/threads/t/messages?cursor=wrong", "/v1/agents/a/revisions?cursor=wrong",
	} {
		if a := n.do(http.MethodGet, path, ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_cursor" || !strings.Contains(a.problem.Detail, `"wrong"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestDescribedQueryParametersAreAccepted(t *testing.T) {
	t.Parallel()
	n := setup(t)
	n.completeRuns()
	n.post(inputOf("r1", "hello"))
	for _, path := range []string{
		"/v1/threads/t/events?follow=false&protocolVersion=1.0", "/v1/threads/t/runs/r1/events?join=true", "/v1/threads/t/messages?limit=1",
		"/v1/agents/a/revisions?limit=1", "/v1/threads/t/runs?cursor=1&limit=2",
	} {
		if a := n.do(http.MethodGet, path, ""); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestRefusedMethodListsAllowed(t *testing.T) {
	t.Parallel()
	n := setup(t)
	for _, tt := range []struct{ method, path, allow string }{
		{http.MethodDelete, "/v1/agents", "GET"},
		{http.MethodPost, "/v1/agents/a", "GET, PUT"},
		{http.MethodGet, "/v1/agents/a/runs", "POST"},
		{http.MethodPatch, "/v1/threads/t/messages", "GET, POST"},
	} {
		a := n.do(tt.method, tt.path, "")
		if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != tt.allow || !strings.Contains(a.problem.Detail, "only "+tt.allow) {
			t.Errorf("%s %s: %d, Allow %q, %s", tt.method, tt.path, a.status, a.header.Get("Allow"), a.body)
		}
	}
}

func TestBodiesWithUnknownMembersAreRefused(t *testing.T) {
	t.Parallel()
	n := setup(t, func(c *api.Config) { c.Inbox = openInbox(t, c.Log) })
	for _, tt := range []struct{ path, body, pointer, names string }{
		{"/v1/threads/t/runs/r1/cancel", `{"raeson":"because"}`, "/raeson", "reason"},
		{"/v1/threads/t/runs/r1/cancel", `{"reason":7}`, "/reason", "number"},
		{"/v1/threads/t/runs/r1/cancel", `{"reason":"x"} {}`, "", "one JSON object"},
		{"/v1/threads/t/runs/r1/cancel", `["x"]`, "", "JSON object"},
		{"/v1/threads/t/runs/r1/fork", `{"a/b~":"t2"}`, "/a~1b~0", "threadId"},
		{"/v1/threads/t/messages", `{"mesage":{}}`, "/mesage", "message"},
		{"/v1/threads/t/tool-results", `{"toolCallId":"c","content":"x","err":"y"}`, "/err", "error"},
		{"/v1/threads/t/approvals/int-1", `{"decision":"approve","agrs":{}}`, "/agrs", "args"},
		{"/v1/threads/t/approvals/int-1/links", `{"decision":"approve","expires":"1h"}`, "/expires", "expiresIn"},
		{"/v1/approvals/batch", `{"decision":[]}`, "/decision", "decisions"},
		{"/v1/agents/a/runs", `{"threadId":"t","runId":"r9","messages":[],"forwardedProps":{"perdure":{"onbusi":"enqueue"}}}`, "/forwardedProps/perdure/onbusi", "onBusy"},
	} {
		a := n.do(http.MethodPost, tt.path, tt.body)
		if a.status != http.StatusBadRequest || a.problem.Code != "invalid_input" || a.problem.Pointer != tt.pointer || !strings.Contains(a.problem.Detail, tt.names) {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, a.status, a.body)
		}
	}
	batch := n.do(http.MethodPost, "/v1/approvals/batch", `{"decisions":[{"threadId":"t","id":"int-1","decision":"approve","note":"x"}]}`)
	if batch.status != http.StatusOK || !strings.Contains(batch.body, `"pointer":"/decisions/0/note"`) || !strings.Contains(batch.body, "remember") {
		t.Errorf("an entry of a batch: %d %s", batch.status, batch.body)
	}
}

// TestInputsMayHaveUnknownMembers: clients of later AG-UI versions may send members that this
// version does not know.
func TestInputsMayHaveUnknownMembers(t *testing.T) {
	t.Parallel()
	n := setup(t)
	n.completeRuns()
	a := n.do(http.MethodPost, "/v1/agents/a/runs", `{"threadId":"t","runId":"r1","later":1,"messages":[{"id":"m","role":"user","content":"hello","later":1}],"forwardedProps":{"later":1,"perdure":null}}`)
	if a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestRootDescribesServer: GET / describes the server, without credentials.
func TestRootDescribesServer(t *testing.T) {
	t.Parallel()
	n := setup(t, func(c *api.Config) { c.Auth = byHeader })
	for accept, want := range map[string]string{
		"":                    `"openapi":"/openapi.json"`,
		"*/*":                 `"agents":"/v1/agents"`,
		"application/json":    `"name":"Perdure"`,
		"text/html,*/*;q=0.8": `<a href="/openapi.json">`,
	} {
		a := n.do(http.MethodGet, "/", "", "Accept", accept)
		if a.status != http.StatusOK || !strings.Contains(a.body, want) || strings.HasPrefix(a.body, "{") == strings.HasPrefix(accept, "text/html") {
			t.Errorf("Accept %q: %d %s", accept, a.status, a.body)
		}
	}
}
