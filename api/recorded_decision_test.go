package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// appendToAudit adds an event of an approval of the thread t1 to the audit.
func (f *inboxFixture) appendToAudit(call, id string, what inbox.EventType, decisions ...inbox.Decision) {
	f.t.Helper()
	a := f.approval("t1", call, id)
	a.Decisions = decisions
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t1"}, ID: "r"}
	entry := inbox.Entry{Tenant: "default", Event: inbox.Event{Type: what, At: since, Approval: *a}}
	if err := f.log.AppendAudit(f.ctx(), run, "evt_"+string(what)+id, entry); err != nil {
		f.t.Fatal(err)
	}
}

// TestDecisionOfFailedRun: a decision that was never carried out, because the next run failed,
// is still in force. The audit shows it to a client that decides later.
func TestDecisionOfFailedRun(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t1", "c1", "c2", "c3")
	votes := func(fixture *inboxFixture, n int, decision string) answer {
		return fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[n], `{"decision":"`+decision+`"}`)
	}
	if a := votes(fixture, 1, "approve"); a.status != http.StatusOK {
		t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
	approved := inbox.Decision{Decision: "approve", Digest: fixture.updates[0][0].Digest, ArgsDigest: "d"}
	fixture.mu.Lock()
	delete(fixture.waits, "thread/default/t1") // the thread does not wait
	fixture.mu.Unlock()
	if a := votes(fixture, 1, "approve"); a.status != http.StatusNotFound {
		t.Errorf("decision without a record: status = %v, want %v; body: %s", a.status, http.StatusNotFound, a.body)
	}
	fixture.appendToAudit("c1", ids[0], inbox.Expired, inbox.Decision{Decision: "expire"})
	fixture.appendToAudit("c2", ids[1], inbox.Decided, approved)
	fixture.appendToAudit("c3", ids[2], inbox.Decided, approved, inbox.Decision{Decision: "reject", Digest: "x", ArgsDigest: "d"})
	for _, want := range []struct {
		index      int
		decision   string
		wantStatus int
		wantCode   string
	}{
		{0, "approve", http.StatusGone, "expired"}, {0, "reject", http.StatusGone, "expired"},
		{1, "approve", http.StatusOK, ""}, {1, "reject", http.StatusConflict, "decided"},
		{2, "approve", http.StatusConflict, "decided"}, // a vote without effect
	} {
		a := votes(fixture, want.index, want.decision)
		a.mustStatus(t, fmt.Sprintf("%s of %d: status", want.decision, want.index+1), want.wantStatus)
		wantEqual(t, fmt.Sprintf("%s of %d: problem code", want.decision, want.index+1), a.problem.Code, want.wantCode)
		if want.wantCode == "" && !strings.Contains(a.body, `"repeated":true`) {
			t.Errorf("%s of %d: got %d %s, want a repeat", want.decision, want.index+1, a.status, a.body)
		}
		if want.wantCode != "" && !strings.Contains(a.problem.Detail, ids[want.index]) {
			t.Errorf("%s of %d: got %d %s, want a detail with the interrupt's ID", want.decision, want.index+1, a.status, a.body)
		}
	}
}

// TestNoLinksForDecidedInterrupts: the API makes no link for a decided interrupt. The page of an
// earlier link shows the decision.
func TestNoLinksForDecidedInterrupts(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t1", "c1", "c2", "c3")
	before := fixture.link("t1", ids[0], `{"decision":"approve"}`)
	fixture.appendToAudit("c1", ids[0], inbox.Voted, inbox.Decision{Decision: "approve"})
	if a := fixture.do(http.MethodGet, before, ""); a.status != http.StatusOK {
		t.Errorf("link after a vote: status = %v, want %v; body: %s", a.status, http.StatusOK, a.body)
	}
	fixture.appendToAudit("c1", ids[0], inbox.Decided, inbox.Decision{Decision: "approve"}, inbox.Decision{Decision: "reject"})
	fixture.appendToAudit("c2", ids[1], inbox.Expired)
	if a := fixture.do(http.MethodGet, before, ""); a.status != http.StatusConflict || !strings.Contains(a.body, "Recorded decision: reject") {
		t.Errorf("earlier link: got %d %s, want %d with the recorded decision", a.status, a.body, http.StatusConflict)
	}
	for n, want := range []struct {
		wantStatus   int
		wantCode     string
		wantRecorded string
	}{{http.StatusConflict, "decided", "reject"}, {http.StatusGone, "expired", "expire"}, {wantStatus: http.StatusCreated}} {
		for _, decision := range []string{"approve", "reject"} {
			a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[n]+"/links", `{"decision":"`+decision+`"}`)
			recorded, _ := a.problem.Recorded.(map[string]any)
			a.mustStatus(t, fmt.Sprintf("link to %s %d: status", decision, n+1), want.wantStatus)
			wantEqual(t, fmt.Sprintf("link to %s %d: problem code", decision, n+1), a.problem.Code, want.wantCode)
			if want.wantCode != "" && (recorded["id"] != ids[n] || recorded["decision"] != want.wantRecorded) {
				t.Errorf("link to %s %d: got %d %s, want the recorded decision %s", decision, n+1, a.status, a.body, want.wantRecorded)
			}
		}
	}
	if len(fixture.updates) != 0 {
		t.Errorf("decisions: got %v, want none", fixture.updates)
	}
}

// TestNoLinksAfterThreadContinued: after the thread has continued, the run's record has the
// decision.
func TestNoLinksAfterThreadContinued(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	p := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t1"}, ID: "r2"}, Lane: stream.LaneMain, Step: "0/tools", Execution: "e2"}
	var err error
	p.After, err = fixture.log.OpenStep(fixture.ctx(), p, stream.Opening{RunID: "r2", Execution: "e2", ProtocolVersion: "1.0", Continues: "r"}, &agui.RunStarted{ThreadID: "t1", RunID: "r2"})
	if err != nil {
		t.Fatal(err)
	}
	attempt, _, err := fixture.log.Begin(fixture.ctx(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer attempt.Close()
	if _, err := attempt.Finish(fixture.ctx(), &stream.Result{Decided: &stream.Decided{CallID: "c1", Kind: "reject", Digest: "d"}}); err != nil {
		t.Fatal(err)
	}
	a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+id+"/links", `{"decision":"approve"}`)
	a.wantStatus(t, "status", http.StatusConflict)
	wantEqual(t, "problem code", a.problem.Code, "decided")
	if !strings.Contains(a.body, `"decision":"reject"`) {
		t.Errorf("body = %q, want text with %q", a.body, `"decision":"reject"`)
	}
}

// TestDecisionRoutesDoNotAbandon: the decision routes do not abandon an interrupt. Only an input
// with resume does.
func TestDecisionRoutesDoNotAbandon(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	for _, decision := range []string{"cancel", "expire", "result", "abandon", "APPROVE", ""} {
		a := fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+id, `{"decision":"`+decision+`"}`)
		a.wantStatus(t, fmt.Sprintf("%q: status", decision), http.StatusUnprocessableEntity)
		wantEqual(t, fmt.Sprintf("%q: problem code", decision), a.problem.Code, "invalid_answer")
		wantEqual(t, fmt.Sprintf("%q: problem pointer", decision), a.problem.Pointer, "/decision")
	}
	if len(fixture.updates) != 0 {
		t.Errorf("decisions: got %v, want none", fixture.updates)
	}
}

// TestDecisionDuringReplay: a decision about an approval that the log has is taken, also if the workflow of the
// thread, after a crash, has not read the call yet.
func TestDecisionDuringReplay(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	id := fixture.openApprovals("t1", "c1")[0]
	fixture.mu.Lock()
	known := fixture.waits["thread/default/t1"]
	fixture.waits["thread/default/t1"] = map[string]*runs.Decision{}
	fixture.mu.Unlock()
	updates := 0
	fixture.temporal.decide = func(workflow string, in runs.DecideRequest) (runs.DecideResult, error) {
		if updates++; updates == 3 {
			fixture.mu.Lock()
			fixture.waits[workflow] = known
			fixture.mu.Unlock()
		}
		return fixture.decideUpdate(workflow, in)
	}
	fixture.do(http.MethodPost, "/v1/threads/t1/approvals/"+id, `{"decision":"approve"}`).mustStatus(t, "decision", http.StatusOK)
	if d := known["c1"]; updates != 3 || d == nil || d.Kind != runs.DecisionApprove {
		t.Errorf("the workflow has got %d updates and %+v, want the approval in the third", updates, d)
	}
}
