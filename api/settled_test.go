package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/workflows"
)

// tells puts into the audit what has happened to an approval of the thread t1.
func (o *office) tells(call, id string, what inbox.EventType, decisions ...inbox.Decision) {
	o.t.Helper()
	a := o.approval("t1", call, id)
	a.Decisions = decisions
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t1"}, ID: "r"}
	entry := inbox.Entry{Tenant: "default", Event: inbox.Event{Type: what, At: since, Approval: *a}}
	if err := o.log.AppendAudit(o.ctx(), run, "evt_"+string(what)+id, entry); err != nil {
		o.t.Fatal(err)
	}
}

// What was decided and never carried out, since the run behind it failed, stands all the same: whoever comes late is
// told so by the audit.
func TestDecidedAndNotCarriedOut(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ids := o.asks("t1", "c1", "c2", "c3")
	votes := func(o *office, n int, decision string) answer {
		return o.do(http.MethodPost, "/v1/threads/t1/approvals/"+ids[n], `{"decision":"`+decision+`"}`)
	}
	if a := votes(o, 1, "approve"); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	approved := inbox.Decision{Decision: "approve", Digest: o.updates[0][0].Digest, ArgsDigest: "d"}
	o.mu.Lock()
	o.waits["thread/default/t1"] = map[string]*workflows.Decision{} // it waits for nothing any more
	o.mu.Unlock()
	if a := votes(o, 1, "approve"); a.status != http.StatusNotFound {
		t.Errorf("what the log does not know: %d %s", a.status, a.body)
	}
	o.tells("c1", ids[0], inbox.Expired, inbox.Decision{Decision: "expire"})
	o.tells("c2", ids[1], inbox.Decided, approved)
	o.tells("c3", ids[2], inbox.Decided, approved, inbox.Decision{Decision: "reject", Digest: "x", ArgsDigest: "d"})
	for _, want := range []struct {
		n        int
		decision string
		status   int
		code     string
	}{
		{0, "approve", http.StatusGone, "expired"}, {0, "reject", http.StatusGone, "expired"},
		{1, "approve", http.StatusOK, ""}, {1, "reject", http.StatusConflict, "decided"},
		{2, "approve", http.StatusConflict, "decided"}, // a vote that came to nothing
	} {
		a := votes(o, want.n, want.decision)
		if a.status != want.status || a.problem.Code != want.code || want.code == "" && !strings.Contains(a.body, `"repeated":true`) {
			t.Errorf("to %s %d: %d %s", want.decision, want.n+1, a.status, a.body)
		}
	}
}
