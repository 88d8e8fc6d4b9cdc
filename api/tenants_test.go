package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/nats-io/nats.go/jetstream"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// tenantFixture is a node behind an authenticating proxy, with two tenants that use the same IDs.
// Data with the mark belongs to the tenant alpha.
type tenantFixture struct {
	*node
	reached *workflowRecorder
	inbox   *approvalroutes.Inbox
	feed    string // the cursor before the events of alpha's approval
}

const (
	mark     = "ALPHA ONLY"
	question = "int-1"
)

// workflowRecorder records the workflows that receive a request. Workflows of other tenants are not
// found.
type workflowRecorder struct {
	*temporalStub
	mu        sync.Mutex
	workflows []string
	// submit receives the submissions and decisions.
	submit func(runs.SubmitRequest)
}

// record notes the workflow that a request has reached.
func (r *workflowRecorder) record(workflow string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workflows = append(r.workflows, workflow)
}

// recordSubmit passes a submission to the test.
func (r *workflowRecorder) recordSubmit(in runs.SubmitRequest) {
	if r.submit != nil {
		r.submit(in)
	}
}

func (r *workflowRecorder) ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, w any, args ...any) (client.WorkflowRun, error) {
	r.record(o.ID)
	return r.temporalStub.ExecuteWorkflow(ctx, o, w, args...)
}

func (r *workflowRecorder) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	r.record(o.WorkflowID)
	switch in := o.Args[0].(type) {
	case runs.SubmitRequest:
		r.recordSubmit(in)
	case runs.DecideRequest:
		r.recordSubmit(runs.SubmitRequest{Decisions: in.Decisions})
	}
	return nil, serviceerror.NewNotFound("none")
}

func (r *workflowRecorder) CancelWorkflow(_ context.Context, workflow, _ string) error {
	r.record(workflow)
	return serviceerror.NewNotFound("none")
}

func (r *workflowRecorder) TerminateWorkflow(_ context.Context, workflow, _, _ string, _ ...any) error {
	r.record(workflow)
	return serviceerror.NewNotFound("none")
}

func (r *workflowRecorder) SignalWorkflow(_ context.Context, workflow, _, _ string, _ any) error {
	r.record(workflow)
	return serviceerror.NewNotFound("none")
}

var byHeader = &auth.Proxy{
	Headers: auth.Headers{Subject: "X-User", Roles: "X-Roles", Tenant: "X-Tenant"},
	Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
}

var (
	alpha = []string{"X-Tenant", "alpha", "X-User", "ann"}
	beta  = []string{"X-Tenant", "beta", "X-User", "bob", "X-Roles", policy.DefaultRoles.PlatformAdmin}
)

// setupTenants returns a fixture with a thread of alpha whose run has ended with an interrupt.
func setupTenants(t *testing.T) *tenantFixture {
	t.Helper()
	fixture := &tenantFixture{}
	fixture.node = setup(t, func(c *api.Config) {
		fixture.reached = &workflowRecorder{temporalStub: c.Temporal.(*temporalStub)}
		fixture.inbox = openInbox(t, c.Log)
		c.Auth, c.Temporal, c.Inbox = byHeader, fixture.reached, fixture.inbox
		c.Principals = approvers(t, "beta", "bob")
		withThreadList(t)(c)
		withAudit(t)(c)
	})
	fixture.temporal.start = func(in runs.Input) error { fixture.interrupt(fixture.begin(in, "e1"), mark); return nil }
	a := fixture.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", mark)), alpha...)
	a.mustStatus(t, "alpha's run", http.StatusOK)
	if !strings.Contains(a.body, mark) {
		t.Errorf("body = %q, want text with %q", a.body, mark)
	}
	text := strings.Replace(scheduleWith(t, map[string]any{"note": mark}), "Good morning.", mark, 1)
	fixture.do(http.MethodPost, "/v1/schedules", text, alpha...).schedule(t, http.StatusCreated)
	fixture.reached.workflows = nil
	fixture.feed = fixture.approvals(alpha...).EventsCursor
	fixture.addInterrupt("alpha", mark)
	return fixture
}

// approvals returns a caller's inbox.
func (f *tenantFixture) approvals(header ...string) (page approvalsPage) {
	f.t.Helper()
	a := f.do(http.MethodGet, "/v1/approvals", "", header...)
	err := json.Unmarshal([]byte(a.body), &page)
	if err != nil {
		f.t.Fatal(err)
	}
	a.mustStatus(f.t, "status", http.StatusOK)
	return page
}

// addInterrupt adds a tenant's interrupt to the inbox, and to the audit of its thread.
func (f *tenantFixture) addInterrupt(tenant, message string) {
	f.t.Helper()
	a := inbox.Approval{
		ID: question, ThreadID: "t", RunID: "r1", Agent: "a", ToolCallID: "c1", ToolName: "refund", Message: message, RequestedAt: since,
		Voting: inbox.Voting{Quorum: 1, Approvers: []string{}, Decisions: []inbox.Decision{}},
	}
	e := inbox.Event{Type: inbox.Opened, At: since, Approval: a}
	run := stream.Run{Thread: stream.Thread{Tenant: tenant, ID: "t"}, ID: "r1"}
	err := errors.Join(f.log.AppendAudit(f.ctx(), run, "evt_opened", inbox.Entry{Tenant: tenant, Event: e}),
		f.inbox.Store.Put(f.ctx(), tenant, &a, since), f.inbox.Store.Record(f.ctx(), tenant, "evt_opened", &e))
	if err != nil {
		f.t.Fatal(err)
	}
	for len(f.approvals("X-Tenant", tenant, "X-User", "ann", "X-Roles", policy.DefaultRoles.TenantAdmin).Items) == 0 {
		select {
		case <-f.ctx().Done():
			f.t.Fatal("the inbox stays empty")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// interrupt ends a run with an interrupt.
func (f *tenantFixture) interrupt(p stream.Place, message string) {
	f.t.Helper()
	interrupts := []agui.Interrupt{{ID: question, Reason: "tool_call", ToolCallID: "c1", Message: message}}
	end := &agui.RunFinished{ThreadID: p.Run.Thread.ID, RunID: p.Run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: interrupts}}
	if _, _, err := f.log.Seal(f.ctx(), p, end); err != nil {
		f.t.Error(err)
	}
}

// position counts the records of alpha in the log and in the inbox, including the records that only
// workflows read.
func (f *tenantFixture) position() uint64 {
	f.t.Helper()
	js, err := jetstream.New(f.log.Conn())
	if err != nil {
		f.t.Fatal(err)
	}
	total := uint64(0)
	for name, subjects := range map[string]string{"PERDURE": "*.alpha.>", "KV_PERDURE_approvals": "$KV.*.*.alpha.>"} {
		all, err := js.Stream(f.ctx(), name)
		if err != nil {
			f.t.Fatal(err)
		}
		info, err := all.Info(f.ctx(), jetstream.WithSubjectFilter(subjects))
		if err != nil {
			f.t.Fatal(err)
		}
		records := uint64(0)
		for _, n := range info.State.Subjects {
			records += n
		}
		if records == 0 {
			f.t.Errorf("number of alpha's records in %s = %v, want at least 1", name, records)
		}
		total += records
	}
	return total
}

// wantUnchanged checks that a request of beta neither shows nor changes data of alpha.
func (f *tenantFixture) wantUnchanged(before uint64, answered string) {
	f.t.Helper()
	if strings.Contains(answered, mark) {
		f.t.Errorf("beta is shown data of alpha = %q, want no %q", answered, mark)
	}
	if now := f.position(); now != before {
		f.t.Errorf("records of alpha: got %d, want %d", now, before)
	}
	f.reached.mu.Lock()
	defer f.reached.mu.Unlock()
	for _, w := range f.reached.workflows {
		if !strings.HasPrefix(w, "thread/beta/") {
			f.t.Errorf("workflow of beta's request = %q, want prefix %q", w, "thread/beta/")
		}
	}
}

// routes returns all registered routes, with IDs of alpha in their paths.
func (n *node) routes() []gin.RouteInfo {
	routes := n.server.Routes()
	for i := range routes {
		routes[i].Handler, routes[i].Path = routes[i].Path, withIDs.Replace(routes[i].Path)
	}
	return routes
}

// withIDs replaces the parameters in the path of a route.
var withIDs = strings.NewReplacer(":thread", "t", ":run", "r1", ":approval", question, ":agent", "a", ":revision", "r", ":token", "eyJub25lIjoxfQ.c2lnbmVk", ":schedule", "s", ":subject", "ann")

var publicRoutes = []string{"/", "/healthz", "/readyz", "/openapi.json", "/.well-known/jwks.json"}

func TestAllRoutesNeedCredentials(t *testing.T) {
	t.Parallel()
	node := setup(t, quotasOf(t, "default: {unauthenticatedPerSecond: unlimited}"), func(c *api.Config) {
		c.Auth, c.Origins = byHeader, []string{"https://app.example"}
		c.Inbox = openInbox(t, c.Log)
	})
	routes := node.routes()
	if len(routes) < 25 {
		t.Fatalf("routes: got %d, want at least 25", len(routes))
	}
	routes = append(routes, gin.RouteInfo{Method: http.MethodGet, Path: "/v1/nothing"}, gin.RouteInfo{Method: http.MethodPatch, Path: "/v1/agents"},
		gin.RouteInfo{Method: http.MethodPost, Path: "/healthz"}, gin.RouteInfo{Method: http.MethodGet, Path: "//healthz"})
	for _, r := range routes {
		if slices.Contains(publicRoutes, r.Path) && r.Method == http.MethodGet {
			continue
		}
		if strings.HasPrefix(r.Path, "/v1/links/") { // a link needs no credentials; this one is invalid
			if a := node.do(r.Method, r.Path, bodyOf(r.Handler)); a.status != http.StatusNotFound {
				t.Errorf("%s %s: status = %v, want %v; body: %s", r.Method, r.Path, a.status, http.StatusNotFound, a.body)
			}
			continue
		}
		for _, header := range [][]string{
			nil, {"X-Tenant", "alpha"}, {"Authorization", "Bearer abc"}, {"X-Forwarded-For", "127.0.0.1", "X-Tenant", "alpha"}, {"Origin", "https://app.example", "Content-Type", "application/json"},
			{"X-User", "\u200b", "X-Tenant", "alpha"}, {"X-User", strings.Repeat("x", 257), "X-Tenant", "alpha"},
		} {
			a := node.do(r.Method, r.Path+"?access_token=abc", bodyOf(r.Handler), header...)
			a.wantStatus(t, fmt.Sprintf("%s %s with %.60q: status", r.Method, r.Path, header), http.StatusUnauthorized)
			wantEqual(t, fmt.Sprintf("%s %s with %.60q: problem code", r.Method, r.Path, header), a.problem.Code, "unauthenticated")
			if !strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Bearer realm="perdure"`) {
				t.Errorf("%s %s with %.60q: header WWW-Authenticate = %q, want prefix %q", r.Method, r.Path, header, a.header.Get("WWW-Authenticate"), `Bearer realm="perdure"`)
			}
		}
	}
}

// bodyOf returns a body that a route accepts, by the template of its path.
func bodyOf(template string) string {
	switch template {
	case "/v1/threads/:thread/messages":
		return `{"message":{"id":"m","role":"user","content":"hello"}}`
	case "/v1/threads/:thread/approvals/:approval":
		return `{"decision":"approve","reason":"because"}`
	case "/v1/threads/:thread/approvals/:approval/links":
		return `{"decision":"approve"}`
	case "/v1/threads/:thread/tool-results":
		return `{"toolCallId":"c1","content":"done"}`
	case "/v1/threads/:thread/runs/:run/cancel":
		return `{"reason":"because"}`
	case "/v1/streams":
		return `{"streams":[{"id":"s","threadId":"t"},{"id":"r","threadId":"t","runId":"r1","join":true}]}`
	case "/v1/approvals/batch":
		return `{"decisions":[{"threadId":"t","id":"int-1","decision":"approve"}]}`
	}
	return `{}`
}

// starts are the routes that create data of beta.
var starts = []string{"/v1/agents/:agent/runs"}

func TestRoutesSeparateTenants(t *testing.T) {
	t.Parallel()
	fixture := setupTenants(t)
	fixture.temporal.start = func(in runs.Input) error { fixture.end(fixture.begin(in, "e2")); return nil }
	cursor := cursors(fixture.do(http.MethodGet, "/v1/threads/t/runs/r1/events", "", alpha...).body)[0]
	before := fixture.position()
	for _, r := range fixture.routes() {
		ours := slices.Contains(starts, r.Handler)
		if ours || slices.Contains(publicRoutes, r.Path) {
			continue // runs start last: then beta has a thread with the same ID
		}
		for _, extra := range [][]string{nil, {"Last-Event-ID", cursor}, {"Last-Event-ID", fixture.feed}, {"Accept", "application/json"}} {
			a := fixture.sendBriefly(r, append(extra, beta...))
			fixture.wantUnchanged(before, a.body)
			if (strings.Contains(r.Handler, ":thread") || strings.Contains(r.Handler, ":schedule")) && a.status < 400 {
				t.Errorf("%s %s: got %d %s, want at least 400", r.Method, r.Path, a.status, a.body)
			}
		}
	}
	own := fixture.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", "beta's")), beta...)
	wantEqual(t, "status of beta's run of the same ID", own.status, http.StatusOK)
	if !strings.Contains(own.body, "RUN_FINISHED") {
		t.Errorf("events of beta's run = %q, want text with %q", own.body, "RUN_FINISHED")
	}
	fixture.wantUnchanged(before, own.body)
	for _, path := range []string{"/v1/threads/t/runs/r1/events", "/v1/threads/t/events?follow=false", "/v1/threads/t/approvals", "/v1/approvals"} {
		for _, after := range []string{"", cursor} {
			a := fixture.do(http.MethodGet, path, "", append([]string{"Last-Event-ID", after}, beta...)...)
			fixture.wantUnchanged(before, a.body)
		}
	}
	listed := fixture.approvals(alpha...)
	wantEqual(t, "number of approvals in alpha's inbox", len(listed.Items), 1)
}

// TestTenantSeesOwnInbox: alpha sees its data in each route of the inbox.
func TestTenantSeesOwnInbox(t *testing.T) {
	t.Parallel()
	fixture := setupTenants(t)
	for _, r := range []gin.RouteInfo{
		{Method: http.MethodGet, Path: "/v1/approvals"}, {Method: http.MethodGet, Path: "/v1/approvals/events"}, {Method: http.MethodGet, Path: "/v1/threads/t/approvals"},
	} {
		a := fixture.sendBriefly(r, append([]string{"Last-Event-ID", fixture.feed}, alpha...))
		a.wantStatus(t, r.Path+": status", http.StatusOK)
		if !strings.Contains(a.body, mark) {
			t.Errorf("%s: body = %q, want text with %q", r.Path, a.body, mark)
		}
	}
}

// TestInboxesAreSeparate: interrupts of two tenants with the same ID are separate: in the
// inbox, its feed, batches and links.
func TestInboxesAreSeparate(t *testing.T) {
	t.Parallel()
	fixture := setupTenants(t)
	fixture.temporal.start = func(in runs.Input) error { fixture.interrupt(fixture.begin(in, "e2"), "beta's"); return nil }
	if a := fixture.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", "beta's")), beta...); a.status != http.StatusOK {
		t.Fatalf("beta's run: status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
	before := fixture.position()
	fixture.addInterrupt("beta", "beta's")
	feed := fixture.sendBriefly(gin.RouteInfo{Method: http.MethodGet, Path: "/v1/approvals/events"}, append([]string{"Last-Event-ID", fixture.feed}, beta...))
	fixture.wantUnchanged(before, feed.body)
	wantEqual(t, "number of events of beta's inbox", strings.Count(feed.body, "opened"), 1)
	if !strings.Contains(feed.body, "beta's") {
		t.Errorf("beta's feed = %q, want text with %q", feed.body, "beta's")
	}
	listed := fixture.approvals(beta...)
	mustEqual(t, "number of approvals in beta's inbox", len(listed.Items), 1)
	wantEqual(t, "message of beta's approval", listed.Items[0].Message, "beta's")
	made := fixture.do(http.MethodPost, "/v1/threads/t/approvals/"+question+"/links", `{"decision":"approve","subject":"bob"}`, beta...)
	var link struct{ URL string }
	err := json.Unmarshal([]byte(made.body), &link)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "status of creating a link", made.status, http.StatusCreated)
	path := strings.TrimPrefix(link.URL, "https://agents.example")
	shown := fixture.do(http.MethodGet, path, "", alpha...) // for any caller
	fixture.wantUnchanged(before, shown.body)
	wantEqual(t, "status of beta's link", shown.status, http.StatusOK)
	if !strings.Contains(shown.body, "beta") {
		t.Errorf("body = %q, want text with %q", shown.body, "beta")
	}
	for _, decides := range []string{path, "/v1/approvals/batch", "/v1/threads/t/approvals/" + question} {
		a := fixture.do(http.MethodPost, decides, bodyOf("/v1/threads/:thread/approvals/:approval"), beta...)
		fixture.wantUnchanged(before, a.body)
	}
	fixture.reached.mu.Lock()
	defer fixture.reached.mu.Unlock()
	wantEqual(t, "server reached the workflow thread/beta/t", slices.Contains(fixture.reached.workflows, "thread/beta/t"), true)
}

// encodeInput returns an input as JSON.
func encodeInput(t *testing.T, in agui.RunAgentInput) string {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sendBriefly sends a request whose answer may be an endless stream, and returns what arrives in
// two seconds.
func (f *tenantFixture) sendBriefly(r gin.RouteInfo, header []string) answer {
	f.t.Helper()
	path := r.Path
	if strings.HasSuffix(r.Handler, "/threads/:thread/events") {
		path += "?follow=false"
	}
	ctx, cancel := context.WithCancel(f.ctx())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, r.Method, f.http.URL+path, strings.NewReader(bodyOf(r.Handler)))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	resp, err := f.http.Client().Do(request)
	if err != nil {
		f.t.Fatalf("%s %s: %v", r.Method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	defer time.AfterFunc(2*time.Second, cancel).Stop()
	text, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, context.Canceled) {
		f.t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
}

// frameTypes returns the types of frames that a socket accepts, from its source code.
func frameTypes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "sockets/session.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "handle" {
			ast.Inspect(f, func(n ast.Node) bool {
				if c, ok := n.(*ast.CaseClause); ok {
					for _, e := range c.List {
						if name, err := strconv.Unquote(e.(*ast.BasicLit).Value); err == nil {
							types = append(types, name)
						}
					}
				}
				return true
			})
		}
	}
	if !slices.Contains(types, "run") || !slices.Contains(types, "steer") {
		t.Fatalf("types of frames: got %q, want run and steer among them", types)
	}
	return types
}

func TestFramesSeparateTenants(t *testing.T) {
	t.Parallel()
	s := setupTenants(t)
	before := s.position()
	c := s.dial(beta...)
	for _, kind := range frameTypes(t) {
		if kind == "run" || kind == "ping" || kind == "unsubscribe" {
			continue
		}
		for i, run := range []any{"r1", nil} {
			id := kind + strconv.Itoa(i)
			frame := map[string]any{"type": kind, "id": id, "threadId": "t", "follow": false, "toolCallId": "c1", "content": "done",
				"approvalId": question, "decision": "approve", "message": map[string]any{"id": "m", "role": "user", "content": "hello"}}
			if run != nil {
				frame["runId"] = run
			}
			c.send(frame)
			f := c.want("error", id)
			s.wantUnchanged(before, f.Detail+string(f.Event))
		}
	}
	s.temporal.start = func(in runs.Input) error { s.end(s.begin(in, "e2")); return nil }
	c.send(map[string]any{"type": "subscribe", "id": "follow", "threadId": "t"})
	c.want("ack", "follow")
	a := s.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", mark)), alpha...)
	a.mustStatus(t, "alpha", http.StatusOK)
	c.send(runFrame("own", inputOf("r1", "beta's")))
	var seen []string
	for ended := false; !ended; {
		f := c.next()
		seen = append(seen, string(f.Event))
		ended = f.ID == "follow" && strings.Contains(string(f.Event), `"RUN_FINISHED"`)
	}
	s.wantUnchanged(before, strings.Join(seen, "\n"))
}
