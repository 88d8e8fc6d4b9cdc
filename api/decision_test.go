package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// decisionAnswer is the answer of the decision routes.
type decisionAnswer struct {
	Decision string
	Repeated bool
	Missing  int
	Tallies  []inbox.Tally
	Code     string
	Detail   string
	Recorded *struct {
		Decision, By string
		At           time.Time
		Args         json.RawMessage
	}
}

// decideAs sends a decision as a subject, and returns the status and the answer.
func (f *inboxFixture) decideAs(subject, id, body string) (int, decisionAnswer) {
	f.t.Helper()
	a := f.do(http.MethodPost, "/v1/threads/t1/approvals/"+id, body, "X-User", subject)
	var got decisionAnswer
	err := json.Unmarshal([]byte(a.body), &got)
	if err != nil {
		f.t.Fatalf("%s: %v", a.body, err)
	}
	return a.status, got
}

// setupPersonalInbox returns an inbox whose callers are the subjects of the header X-User.
func setupPersonalInbox(t *testing.T) *inboxFixture {
	t.Helper()
	return setupInbox(t, func(c *api.Config) {
		c.Auth = authenticatorFunc(func(r *http.Request) (auth.Identity, error) {
			return auth.Identity{Principal: auth.Principal{Tenant: auth.TenantDefault, Subject: r.Header.Get("X-User"), Roles: r.Header.Values("X-Roles")}}, nil
		})
	})
}

// TestEqualDecisionsAreRepeated: a decision that equals the recorded one gets 200 for every caller,
// with the subject and the time of the recorded one. A different decision gets 409 with the same.
// This holds while the workflow has the decision, and later from the runs' records and the audit.
func TestEqualDecisionsAreRepeated(t *testing.T) {
	t.Parallel()
	fixture := setupPersonalInbox(t)
	ids := fixture.openApprovals("t1", "c1", "c2", "c3", "c4")
	first := []string{`{"decision":"approve"}`, `{"decision":"edit","args":{"to":"Bob"}}`, `{"decision":"answer","content":"done"}`, `{"decision":"reject","reason":"too dear"}`}
	other := []string{`{"decision":"reject"}`, `{"decision":"edit","args":{"to":"Eve"}}`, `{"decision":"answer","content":"failed"}`, `{"decision":"reject","reason":"too late"}`}
	for i, body := range first {
		if status, got := fixture.decideAs("ann", ids[i], body); status != http.StatusOK || got.Repeated || got.Recorded != nil {
			t.Fatalf("first decision: got %d %+v, want %d without a recorded decision", status, got, http.StatusOK)
		}
	}
	check := func(when string) {
		t.Helper()
		for i := range ids {
			for _, subject := range []string{"ann", "bob"} {
				for _, body := range []string{first[i], other[i]} {
					status, got := fixture.decideAs(subject, ids[i], body)
					want := http.StatusOK
					if body == other[i] {
						want = http.StatusConflict
					}
					if status != want || got.Repeated != (want == http.StatusOK) || got.Recorded == nil || got.Recorded.By != "ann" || got.Recorded.At.IsZero() || !strings.Contains(first[i], got.Recorded.Decision) {
						t.Errorf("%s: decision %s of %s: got %d %+v, want %d with the decision of ann", when, body, subject, status, got, want)
					}
					if want == http.StatusConflict && (got.Code != "decided" || !strings.Contains(got.Detail, got.Recorded.Decision+" by ann")) {
						t.Errorf("%s: conflict: got %+v, want the code decided and a detail with the decision of ann", when, got)
					}
				}
			}
		}
	}
	check("from the workflow")
	fixture.mu.Lock()
	taken := fixture.waits["thread/default/t1"]
	fixture.waits["thread/default/t1"] = map[string]*runs.Decision{} // the thread has continued
	fixture.mu.Unlock()
	for i, call := range []string{"c1", "c2", "c3", "c4"} {
		d := taken[call]
		content, at, err := fixture.log.DecisionAt(fixture.ctx(), d.Proposal)
		if err != nil {
			t.Fatal(err)
		}
		decision := inbox.Decision{Decision: string(d.Kind), By: content.By.Subject, At: at, Digest: d.Digest, ArgsDigest: d.ArgsDigest, Args: content.Args, Reason: content.Reason}
		if content.Result != nil {
			decision.Content = json.RawMessage(`"done"`)
		}
		fixture.appendToAudit(call, ids[i], inbox.Decided, decision)
	}
	check("from the audit")
}

// TestVoteReturnsMissingVotes: the answer to a vote that does not decide has the missing votes
// of each set of arguments.
func TestVoteReturnsMissingVotes(t *testing.T) {
	t.Parallel()
	fixture := setupPersonalInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	fixture.temporal.decide = func(_ string, in runs.DecideRequest) (out runs.DecideResult, err error) {
		r := runs.DecisionResult{Missing: 2, Tallies: []runs.Tally{{Kind: runs.DecisionApprove, ArgsDigest: "model's", Votes: 2, Missing: 1}, {Kind: runs.DecisionEdit, ArgsDigest: "edited", Votes: 1, Missing: 2}}}
		return runs.DecideResult{Results: []runs.DecisionResult{r}}, nil
	}
	want := []inbox.Tally{{ArgsDigest: "model's", Decision: "approve", Votes: 2, Missing: 1}, {ArgsDigest: "edited", Decision: "edit", Votes: 1, Missing: 2}}
	status, got := fixture.decideAs("ann", id, `{"decision":"edit","args":{"to":"Bob"}}`)
	mustEqual(t, "status", status, http.StatusOK)
	mustEqual(t, "number of missing votes", got.Missing, 2)
	mustEqual(t, "number of tallies", len(got.Tallies), 2)
	wantEqual(t, "first tally", got.Tallies[0], want[0])
	wantEqual(t, "second tally", got.Tallies[1], want[1])
	a := fixture.do(http.MethodPost, "/v1/approvals/batch", `{"decisions":[{"threadId":"t1","id":"`+id+`","decision":"approve"}]}`)
	var batch struct{ Items []decisionAnswer }
	if err := json.Unmarshal([]byte(a.body), &batch); err != nil || len(batch.Items) != 1 || len(batch.Items[0].Tallies) != 2 {
		t.Errorf("batch: got %d %s, want one item with two tallies", a.status, a.body)
	}
	page := fixture.do(http.MethodPost, fixture.link("t1", id, `{"decision":"approve"}`), "")
	if !strings.Contains(page.body, "Your vote is recorded: approve. 2 more votes") {
		t.Errorf("body = %q, want text with %q", page.body, "Your vote is recorded: approve. 2 more votes")
	}
}

// TestDecisionRecordsChannel: the log has the channel of each decision. The command line names
// itself.
func TestDecisionRecordsChannel(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t1", "c1", "c2", "c3")
	batch := func(id string) string {
		return `{"decisions":[{"threadId":"t1","id":"` + id + `","decision":"approve"}]}`
	}
	fixture.do(http.MethodPost, "/v1/approvals/batch", batch(ids[0]), "Perdure-Channel", "cli")
	fixture.do(http.MethodPost, "/v1/approvals/batch", batch(ids[1]), "Perdure-Channel", "link")
	fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[2], `{"decision":"approve"}`, "Perdure-Channel", "cli")
	for call, want := range map[string]string{"c1": "cli", "c2": "batch", "c3": "cli"} {
		d := fixture.proposedDecision("thread/default/t1", call)
		wantEqual(t, call+": channel of the decision", d.Channel, want)
	}
}

// TestSummaryListsOpenInterrupts: a thread's summary does not list decided interrupts, even before
// the thread continues.
func TestSummaryListsOpenInterrupts(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t1", "c1", "c2", "c3")
	open := func() (listed []string) {
		t.Helper()
		var sum struct {
			Waiting *struct{ Interrupts []struct{ ID string } }
		}
		a := fixture.do(http.MethodGet, "/v1/threads/t1", "")
		if err := json.Unmarshal([]byte(a.body), &sum); err != nil {
			t.Fatalf("%s: %v", a.body, err)
		}
		if sum.Waiting != nil {
			for _, i := range sum.Waiting.Interrupts {
				listed = append(listed, i.ID)
			}
		}
		return listed
	}
	fixture.appendToAudit("c1", ids[0], inbox.Opened)
	fixture.appendToAudit("c2", ids[1], inbox.Voted, inbox.Decision{Decision: "approve"})
	if got := open(); !slices.Equal(got, ids) {
		t.Errorf("open interrupts: got %v, want %v", got, ids)
	}
	fixture.appendToAudit("c1", ids[0], inbox.Decided, inbox.Decision{Decision: "approve"})
	fixture.appendToAudit("c2", ids[1], inbox.Expired, inbox.Decision{Decision: "expire"})
	if got := open(); !slices.Equal(got, ids[2:]) {
		t.Errorf("open interrupts: got %v, want %v", got, ids[2:])
	}
	fixture.appendToAudit("c3", ids[2], inbox.Decided, inbox.Decision{Decision: "reject"})
	if got := open(); got != nil {
		t.Errorf("open interrupts: got %v, want none", got)
	}
}

// TestListDecided: decided approvals of all threads are listed with the data of the threads'
// audits, the latest first.
func TestListDecided(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	var ids []string
	for i, thread := range []string{"t1", "t2"} {
		ids = append(ids, fixture.openApprovals(thread, "c1")...)
		a := fixture.approval(thread, "c1", ids[i])
		a.Decisions = []inbox.Decision{{Decision: "edit", By: "ada", Args: json.RawMessage(`{"to":"Bob"}`), Channel: "cli"}}
		e := inbox.Event{Type: inbox.Decided, At: time.Now().Add(time.Duration(i) * time.Second), Approval: *a}
		run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: thread}, ID: "r"}
		if err := errors.Join(fixture.log.AppendAudit(fixture.ctx(), run, "evt_d", inbox.Entry{Tenant: "default", Event: e}), fixture.store.Archive(fixture.ctx(), "default", &e)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(query string) (items []inbox.History, next string) {
		t.Helper()
		var page struct {
			Items      []inbox.History
			NextCursor string
		}
		a := fixture.do(http.MethodGet, "/v1/approvals?status=decided"+query, "")
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != http.StatusOK {
			t.Fatalf("list: got %d %s, want %d with a page", a.status, a.body, http.StatusOK)
		}
		return page.Items, page.NextCursor
	}
	for {
		if items, _ := list(""); len(items) == 2 {
			break
		}
		select {
		case <-fixture.ctx().Done():
			t.Fatal("the list does not get the decisions")
		case <-time.After(5 * time.Millisecond):
		}
	}
	items, next := list("&limit=1")
	rest, end := list("&limit=1&cursor=" + next)
	mustEqual(t, "number of items of the first page", len(items), 1)
	wantEqual(t, "ID of the first item", items[0].ID, ids[1])
	mustEqual(t, "number of items of the second page", len(rest), 1)
	wantEqual(t, "ID of the second item", rest[0].ID, ids[0])
	wantEqual(t, "cursor after the last page", end, "")
	wantEqual(t, "status of the first item", items[0].Status, inbox.StatusDecided)
	wantEqual(t, "arguments of the first item's decision", string(items[0].Decisions[0].Args), `{"to":"Bob"}`)
	wantEqual(t, "channel of the first item's decision", items[0].Decisions[0].Channel, "cli")
	wantEqual(t, "number of events of the first item", len(items[0].Events), 1)
	if items, _ := list("&thread=t1"); len(items) != 1 || items[0].ThreadID != "t1" {
		t.Errorf("items of one thread: got %+v, want one of t1", items)
	}
	got, _ := fixture.list("?status=open")
	wantEqual(t, "number of open approvals", len(got), 2)
	for query, parameter := range map[string]string{"status=pending": "status", "status=": "status", "status=decided&assignee=me": "assignee", "status=decided&olderThan=1h": "olderThan", "status=decided&limit=0": "limit"} {
		if a := fixture.do(http.MethodGet, "/v1/approvals?"+query, ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_input" || !strings.Contains(a.problem.Detail, parameter) {
			t.Errorf("%s: got %d %s, want %d invalid_input about %s", query, a.status, a.body, http.StatusBadRequest, parameter)
		}
	}
	if a := fixture.do(http.MethodGet, "/v1/approvals?status=decided&cursor=x", ""); a.problem.Code != "invalid_cursor" {
		t.Errorf("problem code = %q, want %q", a.problem.Code, "invalid_cursor")
	}
}

// TestCancelNamesSubject: a cancelled run has the subject, the time and the reason of the
// cancel.
func TestCancelNamesSubject(t *testing.T) {
	t.Parallel()
	fixture := setupPersonalInbox(t)
	fixture.temporal.cancel = func(string) error { return nil }
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t1"}, ID: "r"}
	p := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	var err error
	if p.After, err = fixture.log.OpenStep(fixture.ctx(), p, stream.Opening{RunID: "r", Execution: "e", ProtocolVersion: "1.0"}, &agui.RunStarted{ThreadID: "t1", RunID: "r"}); err != nil {
		t.Fatal(err)
	}
	for _, by := range []string{"ada", "bob"} { // the first request counts
		if a := fixture.do(http.MethodPost, "/v1/threads/t1/runs/r/cancel", `{"reason":"`+by+` says so"}`, "X-User", by, "X-Roles", policy.DefaultRoles.TenantAdmin); a.status != http.StatusAccepted {
			t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusAccepted, a.body)
		}
	}
	end := &agui.RunFinished{ThreadID: "t1", RunID: "r", Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}}
	if _, _, err := fixture.log.Seal(fixture.ctx(), p, end); err != nil {
		t.Fatal(err)
	}
	var page struct {
		Items []struct {
			Outcome string
			Cancel  *struct {
				By, Reason string
				At         time.Time
			}
		}
	}
	a := fixture.do(http.MethodGet, "/v1/threads/t1/runs", "", "X-Roles", policy.DefaultRoles.TenantAdmin)
	if err := json.Unmarshal([]byte(a.body), &page); err != nil || len(page.Items) != 1 {
		t.Fatalf("approvals of the thread: got %s, %v, want one item", a.body, err)
	}
	if page.Items[0].Cancel == nil {
		t.Fatal("cancel of the first item = nil, want a value")
	}
	wantEqual(t, "subject of the cancel", page.Items[0].Cancel.By, "ada")
	wantEqual(t, "reason of the cancel", page.Items[0].Cancel.Reason, "ada says so")
	wantEqual(t, "cancel has no time", page.Items[0].Cancel.At.IsZero(), false)
}

// TestBatchOmitsLargeArguments: every entry of a batch may name the same recorded decision.
// The answer leaves out its arguments if they are large. The decision's own route has them.
func TestBatchOmitsLargeArguments(t *testing.T) {
	t.Parallel()
	fixture := setupPersonalInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	large := strings.Repeat("x", 100<<10)
	if status, got := fixture.decideAs("ann", id, `{"decision":"edit","args":{"to":"`+large+`"}}`); status != http.StatusOK {
		t.Fatalf("edit: status = %d, want %d; answer: %+v", status, http.StatusOK, got)
	}
	if status, got := fixture.decideAs("bob", id, `{"decision":"reject"}`); status != http.StatusConflict || len(got.Recorded.Args) < len(large) {
		t.Errorf("single decision: got %d with %d bytes of arguments, want %d with at least %d", status, len(got.Recorded.Args), http.StatusConflict, len(large))
	}
	entry := `{"threadId":"t1","id":"` + id + `","decision":"reject"}`
	a := fixture.do(http.MethodPost, "/v1/approvals/batch", `{"decisions":[`+strings.Repeat(entry+",", 99)+entry+`]}`)
	n := strings.Count(a.body, `"truncated":true`)
	a.wantStatus(t, "batch", http.StatusOK)
	wantEqual(t, "number of truncated items", n, 100)
	if len(a.body) > len(large) {
		t.Errorf("length of the body = %v, want at most %v", len(a.body), len(large))
	}
}
