package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/runs"
)

// quotasOf returns an option of setup: the server has the quotas of a file.
func quotasOf(t *testing.T, file string) func(*api.Config) {
	t.Helper()
	table, err := quota.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return func(c *api.Config) { c.Quotas = table }
}

// byTenantHeader authenticates callers by the headers X-Tenant and X-Subject.
func byTenantHeader(c *api.Config) {
	c.Auth = authenticatorFunc(func(r *http.Request) (auth.Identity, error) {
		if r.Header.Get("X-Tenant") == "" {
			return auth.Identity{}, auth.ErrInvalid
		}
		return auth.Identity{Principal: auth.Principal{Tenant: r.Header.Get("X-Tenant"), Subject: r.Header.Get("X-Subject"), Roles: r.Header.Values("X-Role")}}, nil
	})
}

// TestFloodIsRateLimited: a caller beyond its rate gets 429 with the headers that tell when to
// repeat the request. Probes and other tenants are not affected.
func TestFloodIsRateLimited(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, quotasOf(t, "default: {subjectRequestsPerSecond: 1, subjectWritesPerSecond: 1}"))
	get := func(tenant string) answer {
		return node.do(http.MethodGet, "/v1/agents", "", "X-Tenant", tenant, "X-Subject", "ann")
	}
	var refused answer
	for refused = get("acme"); refused.status == http.StatusOK; refused = get("acme") {
	}
	refused.wantStatus(t, "flood", http.StatusTooManyRequests)
	wantEqual(t, "code", refused.problem.Code, "rate_limited")
	for name, want := range map[string]string{
		"Retry-After": "1", "RateLimit": `"subjectRequestsPerSecond";r=0;t=1`, "RateLimit-Policy": `"subjectRequestsPerSecond";q=10;w=10`,
	} {
		wantEqual(t, name, refused.header.Get(name), want)
	}
	node.do(http.MethodPost, "/v1/agents/a/runs", "{}", "X-Tenant", "acme", "X-Subject", "ann").wantStatus(t, "a run of the same subject", http.StatusTooManyRequests)
	node.do(http.MethodGet, "/v1/agents", "", "X-Tenant", "acme", "X-Subject", "bob").wantStatus(t, "another subject", http.StatusOK)
	get("globex").wantStatus(t, "another tenant", http.StatusOK)
	for range 30 {
		node.do(http.MethodGet, "/healthz", "").wantStatus(t, "probe", http.StatusOK)
	}
}

// TestWritesHaveARateOfTheirOwn: reads do not use the rate of writes, and POST /v1/streams reads.
func TestWritesHaveARateOfTheirOwn(t *testing.T) {
	t.Parallel()
	node := setup(t, quotasOf(t, "default: {writesPerSecond: 1}"))
	statuses := func(method, path, body string) map[int]int {
		got := map[int]int{}
		for range 12 {
			got[node.do(method, path, body).status]++
		}
		return got
	}
	wantEqual(t, "reads", fmt.Sprint(statuses(http.MethodGet, "/v1/agents", "")), "map[200:12]")
	wantEqual(t, "POST /v1/streams", fmt.Sprint(statuses(http.MethodPost, "/v1/streams", "{}")), "map[400:12]")
	got := statuses(http.MethodPost, "/v1/agents/a/runs", "{}")
	if got[http.StatusTooManyRequests] == 0 || got[http.StatusBadRequest] < 10 {
		t.Errorf("writes: got %v, want 10 or more 400 and then 429", got)
	}
}

// TestFramesAreRateLimited: a frame beyond the rate is answered with an error frame, and the
// WebSocket stays open.
func TestFramesAreRateLimited(t *testing.T) {
	t.Parallel()
	node := setup(t, quotasOf(t, "default: {requestsPerSecond: 1}"))
	c := node.dial()
	answers := map[string]int{}
	for i := range 15 {
		c.send(map[string]any{"type": "ping", "id": fmt.Sprint(i)})
		f := c.next()
		answers[f.Type+f.Code]++
		if f.Code != "" && (f.Status != http.StatusTooManyRequests || f.RetryAfter == 0 || f.ID != fmt.Sprint(i)) {
			t.Errorf("error frame: got %+v, want 429 with retryAfter and the ID %d", f, i)
		}
	}
	if answers["errorrate_limited"] == 0 || answers["ack"] < 9 || len(answers) != 2 {
		t.Errorf("answers: got %v, want ack and then rate_limited", answers)
	}
}

// TestPeersWithoutCredentialsAreLimited: a flood of invalid credentials becomes 429 without further
// lines in the log. A caller with valid credentials at the same address is served.
func TestPeersWithoutCredentialsAreLimited(t *testing.T) {
	t.Parallel()
	log := &logBuffer{}
	node := setup(t, byTenantHeader, func(c *api.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	got := map[int]int{}
	for range 300 {
		got[node.do(http.MethodGet, "/v1/agents", "").status]++
	}
	if got[http.StatusUnauthorized] < 200 || got[http.StatusTooManyRequests] == 0 || len(got) != 2 {
		t.Errorf("statuses: got %v, want 200 or more 401 and then 429", got)
	}
	wantEqual(t, "lines in the log", strings.Count(log.String(), "a request was refused"), got[http.StatusUnauthorized])
	node.do(http.MethodGet, "/v1/agents", "", "X-Tenant", "acme").wantStatus(t, "valid credentials", http.StatusOK)
}

// TestTenantsShareStreams: a tenant that takes all streams it can get leaves some to another tenant.
// Streams of threads that do not exist take no places of others. A tenant with a quota has no more.
func TestTenantsShareStreams(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, quotasOf(t, "tenants: {globex: {streams: 1, sockets: 1}}"), func(c *api.Config) { c.MaxStreams = 30 })
	for _, tenant := range []string{"acme", "globex"} {
		node.begin(runs.Input{Run: runs.Ref{Tenant: tenant, Thread: "t", ID: "r"}}, "e")
	}
	dial := func(tenant string) *wsClient {
		return node.dial("X-Tenant", tenant, "X-Role", policy.DefaultRoles.PlatformAdmin)
	}
	flood := dial("acme")
	open := func(name, thread string, want int) {
		t.Helper()
		opened := 0
		for i := range 30 {
			id := fmt.Sprint(name, i)
			flood.send(map[string]any{"type": "subscribe", "id": id, "threadId": strings.ReplaceAll(thread, "*", id)})
			if f := answerTo(flood, id); f.Type == "ack" {
				opened++
			} else {
				wantEqual(t, "code beyond the share", f.Code, "node_full")
			}
		}
		wantEqual(t, "streams of "+name, opened, want)
	}
	open("unknown threads", "missing-*", 3)
	open("a thread", "t", 27)
	other := dial("globex")
	other.send(map[string]any{"type": "subscribe", "id": "1", "threadId": "t"})
	other.want("ack", "1")
	other.send(map[string]any{"type": "subscribe", "id": "2", "threadId": "t"})
	f := answerTo(other, "2")
	wantEqual(t, "error beyond the quota", fmt.Sprintln(f.Status, f.Code, f.Quota, f.Limit, f.Used, f.RetryAfter > 0), "429 quota_exceeded streams 1 1 true\n")
	a := node.do(http.MethodGet, "/v1/ws", "", "X-Tenant", "globex", "Connection", "Upgrade")
	a.wantStatus(t, "second WebSocket", http.StatusTooManyRequests)
	wantEqual(t, "quota", fmt.Sprintln(a.problem.Code, a.problem.Quota, a.problem.Limit, a.problem.Used), "quota_exceeded sockets 1 1\n")
}

// TestSubjectsShareStreamsOfTenant: a subject gets half of the streams and of the WebSockets that
// its tenant can have, and half of the places for threads that do not exist. Another subject finds
// the rest.
func TestSubjectsShareStreamsOfTenant(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, quotasOf(t, "default: {sockets: 4}"), func(c *api.Config) { c.MaxStreams = 40 })
	node.begin(runs.Input{Run: runs.Ref{Tenant: "acme", Thread: "t", ID: "r"}}, "e")
	headers := func(subject string) []string {
		return []string{"X-Tenant", "acme", "X-Subject", subject, "X-Role", policy.DefaultRoles.PlatformAdmin}
	}
	open := func(c *wsClient, thread string) (opened int, code string) {
		for i := range 40 {
			id := fmt.Sprint(thread, i)
			c.send(map[string]any{"type": "subscribe", "id": id, "threadId": thread})
			if f := answerTo(c, id); f.Type == "ack" {
				opened++
			} else {
				code = f.Code
			}
		}
		return opened, code
	}
	ann, bob := node.dial(headers("ann")...), node.dial(headers("bob")...)
	for _, tt := range []struct {
		who    string
		socket *wsClient
		thread string
		want   string
	}{
		{"ann", ann, "missing", "2 node_full"}, {"bob", bob, "missing", "2 node_full"}, // of 4 places, of which fewer than ten keep no reserve
		{"ann", ann, "t", "18 quota_exceeded"}, {"bob", bob, "t", "18 quota_exceeded"}, // of 36
	} {
		opened, code := open(tt.socket, tt.thread)
		wantEqual(t, "streams of "+tt.who+" of "+tt.thread, fmt.Sprint(opened, " ", code), tt.want)
	}
	node.dial(headers("ann")...)
	a := node.do(http.MethodGet, "/v1/ws", "", append(headers("ann"), "Connection", "Upgrade")...)
	wantEqual(t, "third WebSocket of ann", fmt.Sprintln(a.status, a.problem.Code, a.problem.Quota, a.problem.Limit, a.problem.Used), "429 quota_exceeded sockets 2 2\n")
	node.dial(headers("bob")...)
	if a := node.do(http.MethodGet, "/v1/quotas", "", headers("carl")...); !strings.Contains(a.body, `{"quota":"streams","used":36},{"quota":"sockets","used":4,"limit":4}`) {
		t.Errorf("quotas = %s, want 36 streams, without those of the missing thread, and 4 sockets", a.body)
	}
}

// answerTo reads frames up to the first one of a request that is no event.
func answerTo(c *wsClient, id string) wsFrame {
	c.t.Helper()
	for {
		if f := c.next(); f.ID == id && f.Type != "event" {
			return f
		}
	}
}

// TestWaitingStreamFollowsThread: a stream that waits for a thread gets its first run.
func TestWaitingStreamFollowsThread(t *testing.T) {
	t.Parallel()
	node := setup(t)
	c := node.dial()
	c.send(map[string]any{"type": "subscribe", "id": "1", "threadId": "t"})
	c.want("ack", "1")
	node.begin(runs.Input{Run: runs.Ref{Tenant: auth.TenantDefault, Thread: "t", ID: "r"}}, "e")
	c.want("event", "1")
}

// TestFloodLeavesOtherTenantServed: while a tenant floods the node with streams to its share and with
// requests beyond its rate, another tenant starts a run and gets its events, from the same node.
func TestFloodLeavesOtherTenantServed(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, withThreadList(t), quotasOf(t, "default: {subjectRequestsPerSecond: 1}"), func(c *api.Config) { c.MaxStreams = 1000 })
	node.answerRuns()
	node.list(runs.Input{Run: runs.Ref{Tenant: "acme", Thread: "t", ID: "r"}})
	headers := http.Header{"X-Tenant": {"acme"}, "X-Subject": {"ann"}, "X-Role": {policy.DefaultRoles.PlatformAdmin}}
	var statuses sync.Map
	var flood sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for n := range 1000 {
		flood.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, node.http.URL+"/v1/threads/t/events", nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header = headers.Clone()
			req.Header.Set("X-Subject", fmt.Sprint("reader-", n)) // beyond the rate of a subject
			resp, err := node.http.Client().Do(req)
			if err != nil {
				return // the test has ended
			}
			defer func() { _ = resp.Body.Close() }()
			count, _ := statuses.LoadOrStore(resp.StatusCode, new(atomic.Int64))
			count.(*atomic.Int64).Add(1)
			if resp.StatusCode == http.StatusOK {
				<-ctx.Done() // the reader does not read
			}
		})
	}
	defer flood.Wait()
	defer stop()
	refused := func() bool {
		count, ok := statuses.Load(http.StatusServiceUnavailable)
		return ok && count.(*atomic.Int64).Load() >= 50
	}
	waitFor(t, refused)
	for node.do(http.MethodGet, "/v1/quotas", "", "X-Tenant", "acme", "X-Subject", "ann").status != http.StatusTooManyRequests {
	}
	body, err := json.Marshal(inputOf("r1", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	a := node.do(http.MethodPost, "/v1/agents/a/runs", string(body), "X-Tenant", "globex", "X-Subject", "bob")
	a.wantStatus(t, "run of another tenant", http.StatusOK)
	if !strings.Contains(a.body, "answer to r1") || !strings.Contains(a.body, "RUN_FINISHED") {
		t.Errorf("run of another tenant: got %q, want its answer and its end", a.body)
	}
}
