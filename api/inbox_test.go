package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/approvalroutes"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/approvals/links"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// inboxFixture is a node with an inbox, and threads whose workflows take decisions like real ones.
type inboxFixture struct {
	*node
	store *inbox.Store
	index *inbox.Index
	links *links.Keeper

	mu      sync.Mutex
	waits   map[string]map[string]*runs.Decision // by workflow and call
	updates [][]runs.Decision
}

// setupInbox returns a server with an inbox.
func setupInbox(t *testing.T, change ...func(*api.Config)) *inboxFixture {
	t.Helper()
	fixture := &inboxFixture{waits: map[string]map[string]*runs.Decision{}}
	open := func(c *api.Config) {
		c.Inbox, c.Principals = openInbox(t, c.Log), approvers(t, "default", "ada", "bob")
		fixture.store, fixture.index, fixture.links = c.Inbox.Store, c.Inbox.Index, c.Inbox.Links
	}
	fixture.node = setup(t, append([]func(*api.Config){open}, change...)...)
	fixture.temporal.decide = fixture.decideUpdate
	return fixture
}

// approvers returns principals with approvers of a tenant.
func approvers(t *testing.T, tenant string, subjects ...string) *principals.Principals {
	t.Helper()
	var all []auth.Principal
	for _, subject := range subjects {
		all = append(all, auth.Principal{Tenant: tenant, Subject: subject})
	}
	known, err := principals.Of(all, nil)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// openInbox opens an inbox on a log, with the server's index of approvals.
func openInbox(t *testing.T, l *stream.Log) *approvalroutes.Inbox {
	t.Helper()
	store, err := inbox.Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	index, err := store.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(index.Stop)
	keeper, err := links.Open(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &approvalroutes.Inbox{Store: store, Index: index, Links: keeper, PublicURL: "https://agents.example"}
}

// decideUpdate is the decide update of the workflows.
func (f *inboxFixture) decideUpdate(workflow string, in runs.DecideRequest) (out runs.DecideResult, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.updates = append(f.updates, in.Decisions)
	calls := f.waits[workflow]
	if calls == nil {
		return out, serviceerror.NewNotFound("no such workflow")
	}
	for _, d := range in.Decisions {
		before, known := calls[d.CallID]
		r := runs.DecisionResult{Recorded: before}
		switch {
		case !known:
			r.Error = runs.ErrorUnknownCall
		case before == nil:
			calls[d.CallID] = &d
		case before.Digest != d.Digest:
			r.Error = runs.ErrorDecided
		}
		r.Resolved = known
		for _, decision := range calls {
			r.Resolved = r.Resolved && decision != nil
		}
		out.Results = append(out.Results, r)
	}
	return out, nil
}

var since = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// openApprovals ends a run of a thread with interrupts for the calls, adds them to the inbox, and
// returns their IDs.
func (f *inboxFixture) openApprovals(thread string, calls ...string) (ids []string) {
	f.t.Helper()
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: thread}, ID: "r"}
	p := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	must := func(seq uint64, err error) uint64 {
		if err != nil {
			f.t.Fatal(err)
		}
		return seq
	}
	p.After = must(f.log.OpenStep(f.ctx(), p, stream.Opening{RunID: "r", Execution: "e", ProtocolVersion: "1.0"}, &agui.RunStarted{ThreadID: thread, RunID: "r"}))
	message := agui.Message{ID: "m", Role: agui.RoleAssistant}
	end := &agui.RunFinished{ThreadID: thread, RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt}}
	f.mu.Lock()
	f.waits["thread/default/"+thread] = map[string]*runs.Decision{}
	for _, id := range calls {
		message.ToolCalls = append(message.ToolCalls, agui.ToolCall{ID: id, Name: "refund", Arguments: `{"to":"<b>Ada</b>"}`})
		ids = append(ids, run.Identify("int", id))
		end.Outcome.Interrupts = append(end.Outcome.Interrupts, agui.Interrupt{ID: run.Identify("int", id), Reason: "tool_call", ToolCallID: id, Message: "May refund be called?"})
		f.waits["thread/default/"+thread][id] = nil
	}
	f.mu.Unlock()
	attempt, _, err := f.log.Begin(f.ctx(), p)
	if err != nil {
		f.t.Fatal(err)
	}
	defer attempt.Close()
	p.After = must(attempt.Finish(f.ctx(), &stream.Result{Messages: []agui.Message{message}}))
	if _, _, err := f.log.Seal(f.ctx(), p, end); err != nil {
		f.t.Fatal(err)
	}
	// The tests decide as several people.
	if _, err := f.log.Share(f.ctx(), run.Thread, []stream.Share{{Everyone: true, Access: stream.AccessDecide}}); err != nil {
		f.t.Fatal(err)
	}
	for i, id := range ids {
		a := f.approval(thread, calls[i], id)
		if err := f.store.Put(f.ctx(), "default", a, since); err != nil {
			f.t.Fatal(err)
		}
		f.publishEvent(inbox.Opened, a)
	}
	f.until(func(listed []string) bool { return slices.Contains(listed, ids[len(ids)-1]) })
	return ids
}

// approval returns an open approval of a call.
func (f *inboxFixture) approval(thread, call, id string) *inbox.Approval {
	return &inbox.Approval{ID: id, ThreadID: thread, RunID: "r", Agent: "a", ToolCallID: call, ToolName: "refund", RequestedAt: since, Voting: inbox.Voting{Quorum: 1, Approvers: []string{}, Decisions: []inbox.Decision{}}}
}

// publishEvent adds an event of an approval to the inbox.
func (f *inboxFixture) publishEvent(what inbox.EventType, a *inbox.Approval) {
	f.t.Helper()
	if err := f.store.Record(f.ctx(), "default", fmt.Sprintf("evt_%s_%s", what, a.ID), &inbox.Event{Type: what, At: since, Approval: *a}); err != nil {
		f.t.Fatal(err)
	}
}

// list returns the IDs in the inbox, and the page with the cursor of the feed.
func (f *inboxFixture) list(query string) (ids []string, page approvalsPage) {
	f.t.Helper()
	a := f.do(http.MethodGet, "/v1/approvals"+query, "")
	a.mustStatus(f.t, "status", http.StatusOK)
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		f.t.Fatal(err)
	}
	for _, item := range page.Items {
		ids = append(ids, item.ID)
	}
	return ids, page
}

type approvalsPage struct {
	Items                    []inbox.Approval
	NextCursor, EventsCursor string
}

// until waits until the list is as wanted.
func (f *inboxFixture) until(good func(listed []string) bool) {
	f.t.Helper()
	ctx := f.ctx()
	for {
		ids, _ := f.list("?limit=500")
		if good(ids) {
			return
		}
		select {
		case <-ctx.Done():
			f.t.Fatalf("list: got %v", ids)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestListApprovals(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	first, second := fixture.openApprovals("t1", "c1", "c2"), fixture.openApprovals("t2", "c1")
	all := slices.Concat(first, second)
	slices.Sort(all) // all have the same time
	if got, page := fixture.list(""); !slices.Equal(got, all) || page.NextCursor != "" || page.EventsCursor == "" {
		t.Errorf("list: got %v, %+v, want %v in one page", got, page, all)
	}
	one, page := fixture.list("?limit=2")
	two, _ := fixture.list("?limit=2&cursor=" + page.NextCursor)
	wantEqual(t, "approvals of both pages", slices.Concat(one, two), all)
	wantEqual(t, "number of items of the first page", len(one), 2)
	for query, want := range map[string]int{
		"?thread=t1": 2, "?agent=a": 3, "?agent=b": 0, "?tool=refund": 3, "?olderThan=1h": 3, "?assignee=me": 3, "?assignee=role:x": 3, "?assignee=ada": 3,
		"?olderThan=876000h": 0,
	} {
		if got, _ := fixture.list(query); len(got) != want {
			t.Errorf("%s: number of approvals = %v, want %v", query, len(got), want)
		}
	}
	for query, code := range map[string]string{
		"?limit=0": "invalid_input", "?limit=501": "invalid_input", "?olderThan=day": "invalid_input", "?olderThan=-1h": "invalid_input", "?assignee=": "invalid_input",
		"?assignee=role:": "invalid_input", "?cursor=x": "invalid_cursor",
	} {
		a := fixture.do(http.MethodGet, "/v1/approvals"+query, "")
		a.wantStatus(t, query+": status", http.StatusBadRequest)
		wantEqual(t, query+": problem code", a.problem.Code, code)
	}
}

// feed reads n events of the inbox.
func (f *inboxFixture) feed(n int, path string, header ...string) (events, ids []string) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.ctx())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.http.URL+"/v1/approvals/events"+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := f.http.Client().Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for len(events) < n && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var e inbox.Event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				f.t.Fatal(err)
			}
			events = append(events, string(e.Type)+" "+e.Approval.ThreadID)
		}
	}
	if len(events) < n {
		f.t.Errorf("number of events = %v, want at least %v", len(events), n)
	}
	return events, ids
}

func TestApprovalEvents(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t, func(c *api.Config) { c.Heartbeat = 20 * time.Millisecond })
	_, empty := fixture.list("")
	ids := fixture.openApprovals("t1", "c1")
	fixture.openApprovals("t2", "c1")
	decided := fixture.approval("t1", "c1", ids[0])
	fixture.publishEvent(inbox.Decided, decided)
	want := []string{"opened t1", "opened t2", "decided t1"}
	got, cursors := fixture.feed(3, "?after="+empty.EventsCursor)
	if !slices.Equal(got, want) {
		t.Fatalf("feed: got %v, want %v", got, want)
	}
	rest, _ := fixture.feed(2, "", "Last-Event-ID", cursors[0])
	wantEqual(t, "events after the first event", rest, want[1:])
	mine, _ := fixture.feed(2, "?thread=t1&after="+empty.EventsCursor)
	wantEqual(t, "events of one thread", mine, []string{"opened t1", "decided t1"})
	if a := fixture.do(http.MethodGet, "/v1/approvals/events?after=x", ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_cursor" {
		t.Errorf("invalid cursor: got %d %s, want %d invalid_cursor", a.status, a.body, http.StatusBadRequest)
	}
	other := setupInbox(t)
	_, elsewhere := other.list("")
	if a := fixture.do(http.MethodGet, "/v1/approvals/events?after="+elsewhere.EventsCursor, ""); a.status != http.StatusGone || a.problem.Code != "log_replaced" {
		t.Errorf("cursor of another log: got %d %s, want %d log_replaced", a.status, a.body, http.StatusGone)
	}
	fixture.server.Drain()
	if a := fixture.do(http.MethodGet, "/v1/approvals/events", ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("status during the shutdown = %v, want %v; body: %s", a.status, http.StatusServiceUnavailable, a.body)
	}
}

// TestBatchDecidesEachInterrupt: each decision of a batch gets the result that it would get alone.
// The decisions of one thread are sent together.
func TestBatchDecidesEachInterrupt(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	one, two := fixture.openApprovals("t1", "c1", "c2"), fixture.openApprovals("t2", "c1")
	body := fmt.Sprintf(`{"decisions":[
		{"threadId":"t1","id":%q,"decision":"approve"},
		{"threadId":"t2","id":%q,"decision":"reject","reason":"no"},
		{"threadId":"t1","id":%q,"decision":"edit","args":{"to":"Bob"}},
		{"threadId":"t1","id":"nonsense","decision":"approve"},
		{"threadId":"t1","id":%q,"decision":"edit"},
		{"threadId":"t3","id":"x","decision":"approve"},
		{"threadId":"t1","id":%q,"decision":"reject"},
		7]}`, one[0], two[0], one[1], one[1], one[0])
	var answer struct {
		Items []struct {
			ID, Decision, Code, Pointer string
			Status                      int
			Repeated                    bool
			Recorded                    *struct{ Decision string }
		}
	}
	send := func() {
		t.Helper()
		a := fixture.do(http.MethodPost, "/v1/approvals/batch", body)
		if err := json.Unmarshal([]byte(a.body), &answer); err != nil || a.status != http.StatusOK || len(answer.Items) != 8 {
			t.Fatalf("batch: got %d %s, want %d with 8 items", a.status, a.body, http.StatusOK)
		}
	}
	send()
	for i, want := range []string{"200 approve ", "200 reject ", "200 edit ", "404  unknown_approval", "422  invalid_answer", "404  unknown_approval", "409  decided", "400  invalid_input"} {
		r := answer.Items[i]
		if got := fmt.Sprintf("%d %s %s", r.Status, r.Decision, r.Code); got != want || r.Repeated {
			t.Errorf("result %d: got %q, want %q: %+v", i, got, want, r)
		}
	}
	if answer.Items[6].Recorded == nil {
		t.Fatal("items: [6].Recorded = nil, want a value")
	}
	wantEqual(t, "decision recorded for the seventh item", answer.Items[6].Recorded.Decision, "approve")
	wantEqual(t, "pointer of the fifth item", answer.Items[4].Pointer, "/decisions/4/args")
	if len(fixture.updates) != 2 {
		t.Errorf("updates of the threads: got %v, want 2", fixture.updates)
	}
	send()
	mustEqual(t, "first item is a repeat", answer.Items[0].Repeated, true)
	mustEqual(t, "second item is a repeat", answer.Items[1].Repeated, true)
	wantEqual(t, "third item is a repeat", answer.Items[2].Repeated, true)
	for body, pointer := range map[string]string{`{}`: "/decisions", `{"decisions":[]}`: "/decisions", `{"decisions":[` + strings.Repeat("{},", 100) + `{}]}`: "/decisions", `[]`: ""} {
		if a := fixture.do(http.MethodPost, "/v1/approvals/batch", body); a.status != http.StatusBadRequest || a.problem.Pointer != pointer {
			t.Errorf("%.20s: got %d %s, want %d with the pointer %s", body, a.status, a.body, http.StatusBadRequest, pointer)
		}
	}
}

// TestInboxDropsEndedApprovals: an approval whose workflow has ended is listed until a caller
// tries to decide it.
func TestInboxDropsEndedApprovals(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	left, stays := fixture.openApprovals("t1", "c1"), fixture.openApprovals("t2", "c1")
	fixture.mu.Lock()
	delete(fixture.waits, "thread/default/t1") // its workflow was terminated
	fixture.mu.Unlock()
	if a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+left[0], `{"decision":"approve"}`); a.status != http.StatusNotFound {
		t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusNotFound, a.body)
	}
	fixture.until(func(listed []string) bool { return slices.Equal(listed, stays) })
	for range 2 {
		if a := fixture.do(http.MethodPost, "/v1/threads/t2/approvals/"+stays[0], `{"decision":"approve"}`); a.status != http.StatusOK {
			t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
		}
	}
	got, _ := fixture.list("")
	wantEqual(t, "open approvals", got, stays)
}

func TestAudit(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t1", "c1", "c2")
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t1"}, ID: "r"}
	for n, id := range ids {
		a := fixture.approval("t1", fmt.Sprintf("c%d", n+1), id)
		entry := inbox.Entry{Tenant: "default", Event: inbox.Event{Type: inbox.Opened, At: since, Approval: *a}}
		if err := fixture.log.AppendAudit(fixture.ctx(), run, "evt_1"+id, entry); err != nil {
			t.Fatal(err)
		}
	}
	a := fixture.approval("t1", "c1", ids[0])
	a.Decisions = []inbox.Decision{{Decision: "reject", By: "ada", Channel: "link", Reason: "no", At: since, Digest: "d"}}
	if err := fixture.log.AppendAudit(fixture.ctx(), run, "evt_2", inbox.Entry{Tenant: "default", Event: inbox.Event{Type: inbox.Decided, At: since, Approval: *a}}); err != nil {
		t.Fatal(err)
	}
	var page struct {
		Items      []inbox.History
		NextCursor string
	}
	read := func(query string) {
		t.Helper()
		page.Items, page.NextCursor = nil, ""
		got := fixture.do(http.MethodGet, "/v1/threads/t1/approvals"+query, "")
		if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != http.StatusOK {
			t.Fatalf("audit: got %d %s, want %d with a page", got.status, got.body, http.StatusOK)
		}
	}
	read("")
	mustEqual(t, "number of items", len(page.Items), 2)
	wantEqual(t, "status of the first item", page.Items[0].Status, inbox.StatusDecided)
	wantEqual(t, "approver of the first item", page.Items[0].Decisions[0].By, "ada")
	wantEqual(t, "status of the second item", page.Items[1].Status, inbox.StatusOpen)
	wantEqual(t, "number of events of the first item", len(page.Items[0].Events), 2)
	read("?limit=1")
	wantEqual(t, "number of items", len(page.Items), 1)
	if page.NextCursor == "" {
		t.Error("cursor of the next page is empty, want a value")
	}
	read("?limit=1&cursor=" + page.NextCursor)
	mustEqual(t, "number of items", len(page.Items), 1)
	wantEqual(t, "cursor after the last page", page.NextCursor, "")
	wantEqual(t, "ID of the item of the second page", page.Items[0].ID, ids[1])
	for status, want := range map[string]string{"open": ids[1], "decided": ids[0]} {
		read("?status=" + status)
		mustEqual(t, status+": number of items", len(page.Items), 1)
		wantEqual(t, status+": ID of the item", page.Items[0].ID, want)
	}
	for _, status := range []string{"", "pending", "expired"} {
		if a := fixture.do(http.MethodGet, "/v1/threads/t1/approvals?status="+status, ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_input" || !strings.Contains(a.problem.Detail, "status") {
			t.Errorf("status %q: got %d %s, want %d invalid_input", status, a.status, a.body, http.StatusBadRequest)
		}
	}
	if a := fixture.do(http.MethodGet, "/v1/threads/t1/approvals?cursor=-1", ""); a.problem.Code != "invalid_cursor" {
		t.Errorf("problem code = %q, want %q", a.problem.Code, "invalid_cursor")
	}
	if a := fixture.do(http.MethodGet, "/v1/threads/none/approvals", ""); a.problem.Code != "unknown_thread" {
		t.Errorf("problem code = %q, want %q", a.problem.Code, "unknown_thread")
	}
}

// proposedDecision returns the log's record of a decision that a workflow accepted.
func (f *inboxFixture) proposedDecision(workflow, call string) *stream.Decision {
	f.t.Helper()
	f.mu.Lock()
	taken := f.waits[workflow][call]
	f.mu.Unlock()
	if taken == nil {
		f.t.Fatal("proposed decision = nil, want a value")
	}
	d, _, err := f.log.DecisionAt(f.ctx(), taken.Proposal)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// TestLogHasDeciders: the log has the subject and the channel of each decision.
func TestLogHasDeciders(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t1", "c1", "c2")
	fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[0], `{"decision":"approve"}`)
	fixture.do(http.MethodPost, "/v1/approvals/batch", fmt.Sprintf(`{"decisions":[{"threadId":"t1","id":%q,"decision":"reject"}]}`, ids[1]))
	for call, want := range map[string]string{"c1": "http", "c2": "batch"} {
		d := fixture.proposedDecision("thread/default/t1", call)
		wantEqual(t, call+": channel of the decision", d.Channel, want)
		if d.By != nil && d.By.Tenant != auth.TenantDefault {
			t.Errorf("%s: tenant of the decider = %s, want %s", call, d.By.Tenant, auth.TenantDefault)
		}
	}
}
