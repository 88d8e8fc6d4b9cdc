package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// headersOf returns the headers of a caller of the tenant alpha.
func headersOf(subject string, roles ...string) []string {
	return []string{"X-Tenant", "alpha", "X-User", subject, "X-Roles", strings.Join(roles, ",")}
}

// share replaces the shares of ann's thread. It removes the old ones first, so that the index of
// threads certainly has the new ones afterwards.
func (f *tenantFixture) share(t *testing.T, shares string) {
	t.Helper()
	for _, next := range []string{`[]`, shares} {
		f.do(http.MethodPut, "/v1/threads/t/shares", `{"shares":`+next+`}`, alpha...).mustStatus(t, "sharing", http.StatusOK)
		f.awaitShares(t, next)
	}
}

// awaitShares waits until the node's index of threads has the shares: the list shows whether a thread
// is shared, to its owner.
func (f *tenantFixture) awaitShares(t *testing.T, shares string) {
	t.Helper()
	want := shares != "[]"
	for {
		var page struct{ Items []struct{ Shared bool } }
		a := f.do(http.MethodGet, "/v1/threads", "", alpha...)
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Items) == 1 && page.Items[0].Shared == want {
			return
		}
		select {
		case <-f.ctx().Done():
			t.Fatal("the index of threads does not have the shares")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestUsersOfTenantAreSeparate: another user of the same tenant cannot do anything with a private
// thread, on any route, and learns nothing of its content.
func TestUsersOfTenantAreSeparate(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	before := f.position()
	eve := headersOf("eve")
	for _, route := range f.server.Routes() {
		if !strings.HasPrefix(route.Path, "/v1/threads/:thread") || strings.Contains(route.Path, "/superseded/") {
			continue
		}
		path := strings.NewReplacer(":thread", "t", ":run", "r1", ":approval", question).Replace(route.Path)
		a := f.sendBriefly(gin.RouteInfo{Method: route.Method, Path: path, Handler: route.Path}, eve)
		f.wantUnchanged(before, a.body)
		if a.status != http.StatusForbidden {
			t.Errorf("%s %s by another user: got %d %s, want 403", route.Method, path, a.status, a.body)
		}
		var p struct{ Code, Rule string }
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Code != "forbidden" || p.Rule != policy.RuleNone {
			t.Errorf("%s %s by another user: got %s, want the code forbidden and the rule %s", route.Method, path, a.body, policy.RuleNone)
		}
	}
	f.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r2", "hello")), eve...).mustStatus(t, "input of another user", http.StatusForbidden)
	f.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", mark)), eve...).mustStatus(t, "the same input of another user", http.StatusForbidden)
	for _, path := range []string{"/v1/threads", "/v1/approvals", "/v1/approvals?status=decided", "/v1/schedules"} {
		if a := f.do(http.MethodGet, path, "", eve...); a.status != http.StatusOK || strings.Contains(a.body, mark) || !strings.Contains(a.body, `"items":[]`) {
			t.Errorf("GET %s by another user: got %d %s, want an empty list", path, a.status, a.body)
		}
	}
	feed := f.sendBriefly(gin.RouteInfo{Method: http.MethodGet, Path: "/v1/approvals/events"}, append([]string{"Last-Event-ID", f.feed}, eve...))
	if strings.Contains(feed.body, mark) || strings.Contains(feed.body, question) {
		t.Errorf("feed of another user = %q, want no event", feed.body)
	}
	several := f.do(http.MethodPost, "/v1/streams", `{"streams":[{"id":"1","threadId":"t","follow":false},{"id":"2","threadId":"t","runId":"r1"}]}`, eve...)
	f.wantUnchanged(before, several.body)
	if n := strings.Count(several.body, `"code":"forbidden"`); n != 2 {
		t.Errorf("streams of another user: got %s, want two refusals", several.body)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		a := f.do(method, "/v1/schedules/s", scheduleWith(t, nil), eve...)
		if f.wantUnchanged(before, a.body); a.status != http.StatusForbidden {
			t.Errorf("%s of the schedule by another user: got %d %s, want 403", method, a.status, a.body)
		}
	}
	f.do(http.MethodPost, "/v1/schedules/s/trigger", `{}`, eve...).mustStatus(t, "trigger by another user", http.StatusForbidden)
	f.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"id": "s2", "threadId": "t"}), eve...).mustStatus(t, "schedule in the thread of another user", http.StatusForbidden)
}

// TestFramesOfUsersAreSeparate: no frame of another user reaches a private thread.
func TestFramesOfUsersAreSeparate(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	before := f.position()
	c := f.dial(headersOf("eve")...)
	for _, frame := range []map[string]any{
		{"type": "subscribe", "threadId": "t"},
		{"type": "subscribe", "threadId": "t", "runId": "r1", "join": true},
		{"type": "cancel", "threadId": "t", "runId": "r1"},
		{"type": "steer", "threadId": "t", "message": map[string]any{"id": "m9", "role": "user", "content": "hello"}},
		{"type": "decide", "threadId": "t", "approvalId": question, "decision": "approve"},
		{"type": "tool_result", "threadId": "t", "toolCallId": "c1", "content": "x"},
		{"type": "run", "agent": "a", "input": inputOf("r3", "hello")},
	} {
		frame["id"] = "1"
		c.send(frame)
		got := c.next()
		text := fmt.Sprintf("%+v", got)
		f.wantUnchanged(before, text)
		if got.Type != "error" || got.Status != http.StatusForbidden || got.Code != "forbidden" {
			t.Errorf("frame %s of another user: got %s, want 403 forbidden", frame["type"], text)
		}
	}
}

// TestSharesGiveAccess: what a share gives, and no more. Without it, access ends at once.
func TestSharesGiveAccess(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	bob := headersOf("bob", "finance")
	reads := func() int { return f.do(http.MethodGet, "/v1/threads/t/messages", "", bob...).status }
	runs := func() int { return f.do(http.MethodPost, "/v1/threads/t/pause", "", bob...).status }
	decides := func() int {
		return f.do(http.MethodPost, "/v1/threads/t/approvals/"+question, `{"decision":"answer","content":{"not":"text"}}`, bob...).status
	}
	manages := func() int { return f.do(http.MethodPut, "/v1/threads/t/shares", `{"shares":[{}]}`, bob...).status }
	for shares, may := range map[string]string{
		`[]`:                                     "",
		`[{"subject":"bob","access":"read"}]`:    "r",
		`[{"role":"finance","access":"run"}]`:    "rx",
		`[{"everyone":true,"access":"decide"}]`:  "rd",
		`[{"subject":"bob","access":"manage"}]`:  "rxdm",
		`[{"subject":"eve","access":"manage"}]`:  "",
		`[{"role":"sales","access":"manage"}]`:   "",
		`[{"role":"finance","access":"decide"}]`: "rd",
	} {
		f.share(t, shares)
		for kind, status := range map[string]int{"r": reads(), "x": runs(), "d": decides(), "m": manages()} {
			if isDenied := status == http.StatusForbidden; isDenied == strings.Contains(may, kind) {
				t.Errorf("%s: %s by bob: status = %d, want access = %v", shares, kind, status, !isDenied)
			}
		}
		listed := f.do(http.MethodGet, "/v1/threads", "", bob...)
		if isListed := strings.Contains(listed.body, `"threadId":"t"`); isListed != strings.Contains(may, "r") {
			t.Errorf("%s: bob's list = %s, want the thread in it = %v", shares, listed.body, !isListed)
		}
		if n := len(f.approvals(bob...).Items); (n > 0) != strings.Contains(may, "r") {
			t.Errorf("%s: number of approvals in bob's inbox = %d", shares, n)
		}
	}
}

func TestInvalidShares(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	for shares, pointer := range map[string]string{
		`[{"access":"read"}]`:                               "/shares/0",
		`[{"subject":"a","role":"b","access":"read"}]`:      "/shares/0",
		`[{"subject":"a","access":"read"},{"subject":"a"}]`: "/shares/1/access",
		`[{"subject":"a","access":"owner"}]`:                "/shares/0/access",
		`[{"subject":"a\u200b","access":"read"}]`:           "/shares/0",
		`[` + strings.Repeat(`{"everyone":true,"access":"read"},`, 100) + `{"everyone":true,"access":"read"}]`: "/shares",
		`[{"everyone":true,"access":"read"},{"everyone":true,"access":"read"}]`:                                "/shares/1",
	} {
		a := f.do(http.MethodPut, "/v1/threads/t/shares", `{"shares":`+shares+`}`, alpha...)
		if a.status != http.StatusBadRequest || a.problem.Pointer != pointer {
			t.Errorf("%.80s: got %d %s, want 400 at %s", shares, a.status, a.body, pointer)
		}
	}
	for _, body := range []string{"", "{}", "null"} {
		f.do(http.MethodPut, "/v1/threads/t/shares", body, alpha...).mustStatus(t, "no shares in "+body, http.StatusBadRequest)
	}
	f.do(http.MethodPut, "/v1/threads/unknown/shares", `{"shares":[]}`, alpha...).mustStatus(t, "unknown thread", http.StatusNotFound)
}

// TestApproverNeedsNoShare: an approver reads and decides an interrupt of a private thread, and
// nothing else of it.
func TestApproverNeedsNoShare(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	a := inbox.Approval{
		ID: "other", ThreadID: "t", RunID: "r1", Agent: "a", ToolCallID: "c2", ToolName: "refund", Message: "please", RequestedAt: since,
		Voting: inbox.Voting{Quorum: 1, Approvers: []string{"role:finance"}, Decisions: []inbox.Decision{}},
	}
	if err := f.inbox.Store.Put(f.ctx(), "alpha", &a, since); err != nil {
		t.Fatal(err)
	}
	bob, eve := headersOf("bob", "finance"), headersOf("eve")
	for len(f.approvals(bob...).Items) == 0 {
		select {
		case <-f.ctx().Done():
			t.Fatal("the inbox of the approver stays empty")
		case <-time.After(5 * time.Millisecond):
		}
	}
	wantEqual(t, "number of approvals of another user", len(f.approvals(eve...).Items), 0)
	wantEqual(t, "number of approvals of the owner", len(f.approvals(alpha...).Items), 2)
	f.do(http.MethodGet, "/v1/threads/t", "", bob...).mustStatus(t, "the thread, by the approver", http.StatusForbidden)
}

// TestThreadBelongsToWhoBeginsIt: of several users who begin the same thread concurrently, one owns
// it, and the others get 403.
func TestThreadBelongsToWhoBeginsIt(t *testing.T) {
	t.Parallel()
	const users = 8
	for range 3 {
		node := setup(t, func(c *api.Config) { c.Auth = byHeader })
		node.temporal.start = func(in runs.Input) error {
			p := node.begin(in, "e1")
			_, _, err := node.log.Seal(node.ctx(), p, &agui.RunFinished{ThreadID: "t", RunID: p.Run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeSuccess}})
			return err
		}
		statuses := make(chan int, users)
		for i := range users {
			name := fmt.Sprintf("user-%d", i)
			go func() {
				statuses <- node.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("run-of-"+name, "hello")), headersOf(name)...).status
			}()
		}
		got := map[int]int{}
		for range users {
			got[<-statuses]++
		}
		if got[http.StatusOK] != 1 || got[http.StatusForbidden] != users-1 {
			t.Fatalf("number of each status = %v, want one 200, and 403 otherwise", got)
		}
	}
}

// TestFollowerOfUnknownThread: a caller that follows a thread before it exists gets none of its
// events if another caller begins it.
func TestFollowerOfUnknownThread(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth = byHeader }, withThreadList(t))
	ctx, cancel := context.WithTimeout(node.ctx(), 20*time.Second)
	defer cancel()
	c := node.dial(headersOf("eve")...)
	c.send(map[string]any{"type": "subscribe", "id": "1", "threadId": "t"})
	c.want("ack", "1")
	node.temporal.start = func(in runs.Input) error {
		p := node.begin(in, "e1")
		_, _, err := node.log.Seal(ctx, p, &agui.RunFinished{ThreadID: "t", RunID: p.Run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeSuccess}})
		return err
	}
	node.do(http.MethodPost, "/v1/agents/a/runs", encodeInput(t, inputOf("r1", mark)), headersOf("ann")...).mustStatus(t, "ann's run", http.StatusOK)
	if f := c.next(); f.Type != "error" || f.Status != http.StatusForbidden {
		t.Errorf("frame after ann's run = %+v, want 403", f)
	}
}

// TestRevokedShareEndsStream: a reader whose share is removed gets no further event.
func TestRevokedShareEndsStream(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	f.share(t, `[{"subject":"bob","access":"read"}]`)
	c := f.dial(headersOf("bob")...)
	c.send(map[string]any{"type": "subscribe", "id": "1", "threadId": "t"})
	c.want("ack", "1")
	f.share(t, `[]`)
	run := stream.Run{Thread: stream.Thread{Tenant: "alpha", ID: "t"}, ID: "r9"}
	if _, err := f.snapshots.OpenRun(f.ctx(), stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e9"}, stream.Opening{Agent: "a", Continues: "r1"}); err != nil {
		t.Fatal(err)
	}
	for {
		got := c.next()
		if got.Type == "error" {
			if got.Status != http.StatusForbidden {
				t.Errorf("frame after the share was removed = %+v, want 403", got)
			}
			return
		}
		if strings.Contains(string(got.Event), "r9") {
			t.Fatalf("frame after the share was removed = %+v, want none of the run r9", got)
		}
	}
}

// TestForkBelongsToWhoForks: a reader of a thread owns the fork that it makes; others need access to
// the origin.
func TestForkBelongsToWhoForks(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	bob, eve := headersOf("bob"), headersOf("eve")
	f.share(t, `[{"subject":"bob","access":"read"}]`)
	fork := "/v1/threads/t/runs/r1/fork"
	f.do(http.MethodPost, fork, `{"threadId":"of-eve"}`, eve...).mustStatus(t, "eve's fork", http.StatusForbidden)
	f.do(http.MethodPost, fork, `{"threadId":"of-bob"}`, bob...).mustStatus(t, "bob's fork", http.StatusCreated)
	path := "/v1/threads/" + url.PathEscape("of-bob")
	f.do(http.MethodGet, path, "", bob...).mustStatus(t, "the fork, by bob", http.StatusOK)
	f.do(http.MethodGet, path, "", alpha...).mustStatus(t, "the fork, by the owner of its origin", http.StatusForbidden)
	f.do(http.MethodPost, fork, `{"threadId":"of-bob"}`, alpha...).mustStatus(t, "the same fork, by ann", http.StatusConflict)
}

// TestDefinitionsAreForAdministrators: other callers run agents, but do not read their prompts. A
// publication names its author.
func TestDefinitionsAreForAdministrators(t *testing.T) {
	t.Parallel()
	f := setupTenants(t)
	put := f.do(http.MethodPut, "/v1/agents/a", `{"name":"a","model":"test/m","instructions":"secret prompt"}`, append([]string{"Content-Type", "application/json"}, admin...)...)
	put.mustStatus(t, "publication", http.StatusOK)
	revision := strings.Trim(put.header.Get("ETag"), `"`)
	for _, path := range []string{"/revisions", "/revisions/" + revision, "/revisions/" + revision + "/diff"} {
		f.do(http.MethodGet, "/v1/agents/a"+path, "", alpha...).mustStatus(t, path+" by a user", http.StatusForbidden)
		f.do(http.MethodGet, "/v1/agents/a"+path, "", headersOf("tess", policy.DefaultRoles.TenantAdmin)...).mustStatus(t, path+" by an administrator", http.StatusOK)
	}
	for _, path := range []string{"/v1/agents", "/v1/agents/a"} {
		a := f.do(http.MethodGet, path, "", alpha...)
		if a.mustStatus(t, path, http.StatusOK); strings.Contains(a.body, "secret") {
			t.Errorf("%s by a user = %s, want no prompt", path, a.body)
		}
	}
	if list := f.do(http.MethodGet, "/v1/agents/a/revisions", "", admin...); !strings.Contains(list.body, `"by":"root","byTenant":"alpha"`) {
		t.Errorf("revisions = %s, want the author of the publication", list.body)
	}
}
