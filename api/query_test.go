package api_test

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/stream"
)

// TestUnknownQueryParametersAreRefused: a misspelled filter must not list everything, and a
// misspelled cursor must not start again.
func TestUnknownQueryParametersAreRefused(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), func(c *api.Config) {
		c.Inbox, c.Schedules = openInbox(t, c.Log), &schedules.Store{}
	})
	for _, r := range node.routes() {
		if strings.HasPrefix(r.Path, "/v1/links/") {
			continue // mail programs add parameters to links
		}
		a := node.do(r.Method, r.Path+"?zzz=1&statsu=idle", bodyOf(r.Handler))
		a.wantStatus(t, fmt.Sprintf("%s %s: status", r.Method, r.Path), http.StatusBadRequest)
		wantEqual(t, fmt.Sprintf("%s %s: problem code", r.Method, r.Path), a.problem.Code, "invalid_input")
		if !strings.Contains(a.problem.Detail, `unknown query parameters "statsu", "zzz": this route has `) {
			t.Errorf("%s %s: problem detail = %q, want text with %q", r.Method, r.Path, a.problem.Detail, `unknown query parameters "statsu", "zzz": this route has `)
		}
		wantEqual(t, fmt.Sprintf("%s %s: problem parameter", r.Method, r.Path), a.problem.Parameter, "statsu")
		for name := range described().queryOf(r.Method, r.Path) {
			if !strings.Contains(a.problem.Detail, name) {
				t.Errorf("%s %s does not list %s: problem detail = %q, want text with %q", r.Method, r.Path, name, a.problem.Detail, name)
			}
			b := node.do(r.Method, r.Path+"?"+name+"=x&"+name+"=x", bodyOf(r.Handler))
			b.wantStatus(t, fmt.Sprintf("%s %s: status", r.Method, r.Path), http.StatusBadRequest)
			if !strings.Contains(b.problem.Detail, name+" may be given only once") {
				t.Errorf("%s %s: problem detail = %q, want text with %q", r.Method, r.Path, b.problem.Detail, name+" may be given only once")
			}
			wantEqual(t, fmt.Sprintf("%s %s: problem parameter", r.Method, r.Path), b.problem.Parameter, name)
		}
	}
}

// TestMalformedQueriesAreRefused: no route ignores a query that it cannot parse. The problem names
// the cause.
func TestMalformedQueriesAreRefused(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), withAudit(t), func(c *api.Config) {
		c.Inbox, c.Schedules = openInbox(t, c.Log), &schedules.Store{}
	})
	for _, r := range node.routes() {
		if strings.HasPrefix(r.Path, "/v1/links/") {
			continue // mail programs add parameters to links
		}
		for query, want := range map[string]string{"limit=2;cursor=x": "semicolon", "limit=%u": `"%u"`} {
			name := fmt.Sprintf("%s %s?%s", r.Method, r.Path, query)
			a := node.do(r.Method, r.Path+"?"+query, bodyOf(r.Handler))
			a.wantRefusal(t, name, http.StatusBadRequest, "invalid_input", "")
			if !strings.Contains(a.problem.Detail, want) {
				t.Errorf("%s: problem detail = %q, want text with %q", name, a.problem.Detail, want)
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
		if p, _ := c.resolve(p, pointer); p.(map[string]any)["in"] == "query" {
			found[p.(map[string]any)["name"].(string)] = p.(map[string]any)["schema"]
		}
	}
	return found
}

// TestEventLimitIsValidated: the limit applies to pages of events. A stream refuses an invalid
// limit too, so that the client notices.
func TestEventLimitIsValidated(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	for _, path := range []string{"/v1/threads/t/events?follow=false&limit=0", "/v1/threads/t/runs/r1/events?limit=x"} {
		for _, accept := range []string{"text/event-stream", "application/json"} {
			a := node.do(http.MethodGet, path, "", "Accept", accept)
			a.wantStatus(t, fmt.Sprintf("%s as %s: status", path, accept), http.StatusBadRequest)
			if !strings.Contains(a.problem.Detail, "limit") {
				t.Errorf("%s as %s: problem detail = %q, want text with %q", path, accept, a.problem.Detail, "limit")
			}
		}
	}
}

// parameterBounds are the bytes of values that have fewer than stream.MaxIDBytes.
var parameterBounds = map[string]int{"tenant": auth.MaxNameBytes, "subject": auth.MaxNameBytes, "assignee": auth.MaxNameBytes + len("role:")}

// TestInvalidParameters: no route accepts a parameter of the query or of the path that is too long,
// or has control characters or invalid UTF-8. The problem of a query parameter names it.
func TestInvalidParameters(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), withAudit(t), func(c *api.Config) { c.Inbox = openInbox(t, c.Log) })
	checked := map[string]bool{}
	for _, r := range node.server.Routes() {
		for _, segment := range strings.Split(r.Path, "/") {
			name, ok := strings.CutPrefix(segment, ":")
			for _, bad := range invalidValues(name) {
				if !ok {
					break
				}
				checked[r.Method+" "+r.Path+" "+segment] = true
				path := withIDs.Replace(strings.Replace(r.Path, segment, bad, 1))
				a := node.do(r.Method, path, bodyOf(r.Path))
				if a.status != http.StatusBadRequest && a.status != http.StatusNotFound {
					t.Errorf("%s %.60s: status = %d, want 400 or 404; body: %.200s", r.Method, path, a.status, a.body)
				}
			}
		}
		if strings.HasPrefix(r.Path, "/v1/links/") {
			continue // mail programs add parameters to links
		}
		path := withIDs.Replace(r.Path)
		for name := range described().queryOf(r.Method, path) {
			for _, bad := range invalidValues(name) {
				checked[r.Method+" "+r.Path+" "+name] = true
				a := node.do(r.Method, path+"?"+name+"="+bad, bodyOf(r.Path))
				a.wantStatus(t, fmt.Sprintf("%s %s?%s=%.20s: status", r.Method, path, name, bad), http.StatusBadRequest)
				wantEqual(t, fmt.Sprintf("%s %s?%s=%.20s: problem parameter", r.Method, path, name, bad), a.problem.Parameter, name)
			}
		}
	}
	if len(checked) < 80 {
		t.Errorf("checked %d parameters, want at least 80", len(checked))
	}
}

// invalidValues returns values that no parameter of a name may have, as text of a URL.
func invalidValues(name string) []string {
	bound := cmp.Or(parameterBounds[name], stream.MaxIDBytes)
	return []string{strings.Repeat("x", bound+1), "a%00b", "a%0Ab", "%FF"}
}

// TestInvalidQueriesNameTheParameter: a problem about the query names the invalid parameter.
func TestInvalidQueriesNameTheParameter(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), withAudit(t), func(c *api.Config) { c.Inbox = openInbox(t, c.Log) })
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	for query, want := range map[string]string{
		"/v1/threads?limit=0":                              "limit",
		"/v1/threads?status=asleep":                        "status",
		"/v1/threads?updatedAfter=noon":                    "updatedAfter",
		"/v1/threads?updatedBefore=noon":                   "updatedBefore",
		"/v1/threads?cursor=wrong":                         "cursor",
		"/v1/threads/t/messages?cursor=wrong":              "cursor",
		"/v1/threads/t/messages?waitFor=wrong":             "waitFor",
		"/v1/threads/t/runs?cursor=wrong":                  "cursor",
		"/v1/threads/t/superseded?cursor=wrong":            "cursor",
		"/v1/threads/t/approvals?cursor=wrong":             "cursor",
		"/v1/threads/t/approvals?waitFor=wrong":            "waitFor",
		"/v1/threads/t/events?follow=maybe":                "follow",
		"/v1/threads/t/events?after=wrong":                 "after",
		"/v1/threads/t/events?waitFor=wrong":               "waitFor",
		"/v1/threads/t/runs/r1/events?join=true&after=1-1": "after",
		"/v1/threads/t/runs/r1/events?after=wrong":         "after",
		"/v1/threads/t/runs/r1/events?waitFor=wrong":       "waitFor",
		"/v1/approvals?status=gone":                        "status",
		"/v1/approvals?olderThan=long":                     "olderThan",
		"/v1/approvals?status=decided&olderThan=1h":        "olderThan",
		"/v1/approvals?assignee=role:":                     "assignee",
		"/v1/approvals?cursor=wrong":                       "cursor",
		"/v1/approvals?status=decided&cursor=wrong":        "cursor",
		"/v1/approvals?waitFor=wrong":                      "waitFor",
		"/v1/approvals/events?after=wrong":                 "after",
		"/v1/agents/a?scope=mine":                          "scope",
		"/v1/agents/a/revisions?cursor=wrong":              "cursor",
		"/v1/audit?outcome=good":                           "outcome",
		"/v1/audit?since=noon":                             "since",
		"/v1/audit?cursor=wrong":                           "cursor",
		"/v1/audit?platform=1":                             "platform",
		"/v1/quotas?tenant=":                               "tenant",
	} {
		a := node.do(http.MethodGet, query, "")
		a.wantStatus(t, query+": status", http.StatusBadRequest)
		wantEqual(t, query+": problem parameter", a.problem.Parameter, want)
		wantEqual(t, query+": problem pointer", a.problem.Pointer, "")
	}
	header := node.do(http.MethodGet, "/v1/threads/t/events?after=1-1", "", "Last-Event-ID", "wrong")
	wantEqual(t, "wrong Last-Event-ID: problem code", header.problem.Code, "invalid_cursor")
	wantEqual(t, "wrong Last-Event-ID: problem parameter", header.problem.Parameter, "")
}

// TestProblemNamesInvalidCursor: a request may have more than one cursor. The problem names the
// invalid one.
func TestProblemNamesInvalidCursor(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	cursor := cursors(node.post(inputOf("r1", "hello")).body)[0]
	for _, path := range []string{
		"/v1/threads/t/events?after=wrong&waitFor=" + cursor, "/v1/threads/t/runs/r1/events?waitFor=wrong&after=" + cursor,
		"/v1/threads/t/messages?cursor=wrong", "/v1/agents/a/revisions?cursor=wrong",
	} {
		a := node.do(http.MethodGet, path, "")
		a.wantStatus(t, path+": status", http.StatusBadRequest)
		wantEqual(t, path+": problem code", a.problem.Code, "invalid_cursor")
		if !strings.Contains(a.problem.Detail, `"wrong"`) {
			t.Errorf("%s: problem detail = %q, want text with %q", path, a.problem.Detail, `"wrong"`)
		}
	}
}

func TestDescribedQueryParametersAreAccepted(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	for _, path := range []string{
		"/v1/threads/t/events?follow=false&protocolVersion=1.0", "/v1/threads/t/runs/r1/events?join=true", "/v1/threads/t/messages?limit=1",
		"/v1/agents/a/revisions?limit=1", "/v1/threads/t/runs?cursor=1&limit=2",
	} {
		a := node.do(http.MethodGet, path, "")
		a.wantStatus(t, path+": status", http.StatusOK)
	}
}

func TestRefusedMethodListsAllowed(t *testing.T) {
	t.Parallel()
	node := setup(t)
	for _, tt := range []struct{ method, path, wantAllow string }{
		{http.MethodDelete, "/v1/agents", "GET"},
		{http.MethodPost, "/v1/agents/a", "GET, PUT"},
		{http.MethodGet, "/v1/agents/a/runs", "POST"},
		{http.MethodPatch, "/v1/threads/t/messages", "GET, POST"},
	} {
		a := node.do(tt.method, tt.path, "")
		a.wantStatus(t, fmt.Sprintf("%s %s: status", tt.method, tt.path), http.StatusMethodNotAllowed)
		wantEqual(t, fmt.Sprintf("%s %s: header Allow", tt.method, tt.path), a.header.Get("Allow"), tt.wantAllow)
		if !strings.Contains(a.problem.Detail, "only "+tt.wantAllow) {
			t.Errorf("%s %s: problem detail = %q, want text with %q", tt.method, tt.path, a.problem.Detail, "only "+tt.wantAllow)
		}
	}
}

func TestBodiesWithUnknownMembersAreRefused(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Inbox = openInbox(t, c.Log) })
	for _, tt := range []struct{ path, body, wantPointer, wantDetail string }{
		{"/v1/threads/t/runs/r1/cancel", `{"raeson":"because"}`, "/raeson", "reason"},
		{"/v1/threads/t/runs/r1/cancel", `{"reason":7}`, "/reason", "number"},
		{"/v1/threads/t/runs/r1/cancel", `{"reason":"x"} {}`, "", "one JSON object"},
		{"/v1/threads/t/runs/r1/cancel", `["x"]`, "", "JSON object"},
		{"/v1/threads/t/runs/r1/cancel", `{"reason":"x","reason":"y"}`, "/reason", "appears twice"},
		{"/v1/threads/t/approvals/int-1", `{"decision":"approve","decision":"reject"}`, "/decision", "appears twice"},
		{"/v1/threads/t/approvals/int-1", `{"decision":"approve","Decision":"reject"}`, "/Decision", "decision"},
		{"/v1/threads/t/approvals/int-1", `{"decision":"edit","args":{"list":[0,{"a/b":1,"a/b":2}]}}`, "/args/list/1/a~1b", "appears twice"},
		{"/v1/agents/a/runs", `{"threadId":"t","threadId":"u","runId":"r9","messages":[]}`, "/threadId", "appears twice"},
		{"/v1/threads/t/runs/r1/fork", `{"a/b~":"t2"}`, "/a~1b~0", "threadId"},
		{"/v1/threads/t/messages", `{"mesage":{}}`, "/mesage", "message"},
		{"/v1/threads/t/tool-results", `{"toolCallId":"c","content":"x","err":"y"}`, "/err", "error"},
		{"/v1/threads/t/approvals/int-1", `{"decision":"approve","agrs":{}}`, "/agrs", "args"},
		{"/v1/threads/t/approvals/int-1/links", `{"decision":"approve","expires":"1h"}`, "/expires", "expiresIn"},
		{"/v1/approvals/batch", `{"decision":[]}`, "/decision", "decisions"},
		{"/v1/agents/a/runs", `{"threadId":"t","runId":"r9","messages":[],"forwardedProps":{"perdure":{"onbusi":"enqueue"}}}`, "/forwardedProps/perdure/onbusi", "onBusy"},
	} {
		a := node.do(http.MethodPost, tt.path, tt.body)
		a.wantStatus(t, fmt.Sprintf("%s %s: status", tt.path, tt.body), http.StatusBadRequest)
		wantEqual(t, fmt.Sprintf("%s %s: problem code", tt.path, tt.body), a.problem.Code, "invalid_input")
		wantEqual(t, fmt.Sprintf("%s %s: problem pointer", tt.path, tt.body), a.problem.Pointer, tt.wantPointer)
		if !strings.Contains(a.problem.Detail, tt.wantDetail) {
			t.Errorf("%s %s: problem detail = %q, want text with %q", tt.path, tt.body, a.problem.Detail, tt.wantDetail)
		}
	}
	batch := node.do(http.MethodPost, "/v1/approvals/batch", `{"decisions":[{"threadId":"t","id":"int-1","decision":"approve","note":"x"}]}`)
	batch.wantStatus(t, "an entry of a batch", http.StatusOK)
	if !strings.Contains(batch.body, `"pointer":"/decisions/0/note"`) {
		t.Errorf("body = %q, want text with %q", batch.body, `"pointer":"/decisions/0/note"`)
	}
	if !strings.Contains(batch.body, "remember") {
		t.Errorf("body = %q, want text with %q", batch.body, "remember")
	}
}

// TestInputsMayHaveUnknownMembers: clients of later AG-UI versions may send members that this
// version does not know.
func TestInputsMayHaveUnknownMembers(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	a := node.do(http.MethodPost, "/v1/agents/a/runs", `{"threadId":"t","runId":"r1","later":1,"messages":[{"id":"m","role":"user","content":"hello","later":1}],"forwardedProps":{"later":1,"perdure":null}}`)
	a.wantStatus(t, "status", http.StatusOK)
}

// TestRootDescribesServer: GET / describes the server, without credentials.
func TestRootDescribesServer(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth = byHeader })
	for accept, want := range map[string]string{
		"":                    `"openapi":"/openapi.json"`,
		"*/*":                 `"agents":"/v1/agents"`,
		"application/json":    `"name":"Perdure"`,
		"text/html,*/*;q=0.8": `<a href="/openapi.json">`,
	} {
		a := node.do(http.MethodGet, "/", "", "Accept", accept)
		a.wantStatus(t, fmt.Sprintf("Accept %q: status", accept), http.StatusOK)
		if !strings.Contains(a.body, want) {
			t.Errorf("Accept %q: body = %q, want text with %q", accept, a.body, want)
		}
		wantEqual(t, fmt.Sprintf("Accept %q: body is a JSON object", accept), strings.HasPrefix(a.body, "{"), !strings.HasPrefix(accept, "text/html"))
	}
}
